"""The model as the agent's loop calls it: timed, traced, bounded, cached, and with failures that are told apart."""

import json
from collections.abc import Callable
from typing import Any

import openai
from smolagents import Model

from deskfork.agent.limits import Budget
from deskfork.agent.meter import StepMeter
from deskfork.agent.models.built import BuiltModel
from deskfork.agent.models.cache import ResponseCache
from deskfork.agent.models.call import Call, call_of
from deskfork.agent.models.context import ContextCut, ContextPolicy, bounded
from deskfork.agent.models.failures import (
    GARBAGE,
    PASSING,
    bound_hit,
    is_overflow,
    is_refusal,
    retry_after_s,
    said,
)
from deskfork.agent.models.images import SentImages
from deskfork.agent.models.reply import Reply, chat_message, read_reply, refused
from deskfork.core.errors import InfraError, TransportError
from deskfork.core.tracing import Attribute, span
from deskfork.core.waiting import Deadline, wait_until

FIRST_PAUSE_S = 1.0
MAX_PAUSE_S = 60.0
SPAN_TEXT_CHARS = 2000
_DEFAULT_CONTEXT = ContextPolicy()


class MeteredModel(Model):  # type: ignore[misc]  # smolagents ships no types
    """Wraps a model for one run of an agent."""

    def __init__(
        self,
        built: BuiltModel,
        budget: Budget,
        meter: StepMeter,
        *,
        attempts: int = 4,
        context: ContextPolicy = _DEFAULT_CONTEXT,
        cache: ResponseCache | None = None,
    ) -> None:
        """Wrap a model.

        Args:
            built: The model.
            budget: Is told what each call billed.
            meter: Is charged the time of each call as the model's.
            attempts: How often one call is made when the API is busy or unreachable.
            context: What the model is shown of a long conversation.
            cache: Asked before the model, and told its answers. A script never is.
        """
        super().__init__(model_id=built.spec)
        self.last: Call | None = None
        """The latest call; None before the first, and after one that failed."""
        self._built = built
        self._budget = budget
        self._meter = meter
        self._attempts = attempts
        self._context = context
        self._cache = cache if built.has_more is None else None
        self._images = SentImages()

    @property
    def has_more(self) -> bool:
        """Whether the model has anything more to say; only a script ever has not."""
        return self._built.has_more is None or self._built.has_more()

    def generate(
        self,
        messages: list[Any],
        stop_sequences: list[str] | None = None,
        response_format: dict[str, str] | None = None,
        tools_to_call_from: list[Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call the model once, or a few times while its API is busy; compressing images counts as its time.

        Returns:
            smolagents' ChatMessage, with a content that holds no action where the model gave none. Arguments of tool
            calls that are no JSON object stay text: the agent is to say so to the model.

        Raises:
            InfraError: The model could not be asked, or did not answer as agreed; or the conversation does not fit,
                and the budget says so.
        """
        self.last = None
        arguments = {"stop_sequences": stop_sequences, "response_format": response_format, **kwargs}
        if tools_to_call_from:
            arguments["tools_to_call_from"] = tools_to_call_from
        name = self._built.spec.partition(":")[2].partition("@")[0]
        attributes: dict[str, Attribute] = {"openinference.span.kind": "LLM", "llm.model_name": name}
        attributes |= {"gen_ai.operation.name": "chat", "gen_ai.request.model": name}
        with span("model call", attributes) as current, self._meter.charge("model"):
            messages, cut = self._bounded(messages)
            reply, attempts, is_cached = self._answer(messages, arguments)
            self._count(reply, current.set_attribute)
            current.set_attribute("deskfork.cached", is_cached)
            uses = json.dumps([use.model_dump() for use in reply.tool_calls]) if reply.tool_calls else ""
            current.set_attribute("output.value", f"{reply.content or ''}{uses}"[:SPAN_TEXT_CHARS])
        self.last = call_of(reply, attempts=attempts, cut=cut, is_cached=is_cached)
        return chat_message(reply)

    def _bounded(self, messages: list[Any]) -> tuple[list[Any], ContextCut]:
        kept, cut = bounded(messages, self._context)
        if self._context.tokens is not None and cut.estimated_tokens > self._context.tokens:
            reason = f"the conversation no longer fits into the {self._context.tokens} tokens of the context policy"
            self._budget.exhaust(reason)
            raise InfraError(f"model '{self._built.spec}': {reason}: about {cut.estimated_tokens} are left")
        return kept, cut

    def _answer(self, messages: list[Any], arguments: dict[str, Any]) -> tuple[Reply, int, bool]:
        """Return the reply, how often it was asked for, and whether it was stored."""
        self._images.keep_only(messages)
        if self._cache is None:
            return (*self._ask(messages, arguments, lambda _: None), False)
        cache, key = self._cache, self._cache.key(self._built, messages, arguments, self._images.digest)
        stored = cache.get(key)
        if stored is not None:
            return stored, 0, True
        return (*self._ask(messages, arguments, lambda reply: cache.put(key, self._built.spec, reply)), False)

    def _ask(self, messages: list[Any], arguments: dict[str, Any], keep: Callable[[Reply], None]) -> tuple[Reply, int]:
        """Retry what passes by itself, a busy or unreachable API; at worst a lost answer is paid for twice."""
        if self._built.is_remote:
            messages = self._images.with_urls(messages)
        for attempt in range(1, self._attempts + 1):
            if self._built.is_remote:
                arguments["timeout"] = max(1.0, min(self._built.timeout_s, self._budget.deadline.remaining_s))
            try:
                message = self._built.model.generate(messages, **arguments)
                reply = read_reply(message, is_remote=self._built.is_remote)
            except openai.OpenAIError as exc:
                if is_refusal(exc):
                    return refused(said(exc)), attempt
                self._wait_or_raise(attempt, exc, arguments)
            except TransportError as exc:
                raise InfraError(f"model '{self._built.spec}': {exc}") from exc
            except GARBAGE as exc:
                raise InfraError(f"model '{self._built.spec}': its answer was not understood: {exc!r}"[:500]) from exc
            else:
                keep(reply)
                return reply, attempt
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _wait_or_raise(self, attempt: int, error: openai.OpenAIError, arguments: dict[str, Any]) -> None:
        """Return when it is time for the next attempt.

        Raises:
            InfraError: There is none to be made.
        """
        spec = self._built.spec
        if bound := bound_hit(error):
            raise InfraError(f"model '{spec}': {bound}") from error
        if isinstance(error, openai.APITimeoutError):
            raise InfraError(f"model '{spec}': no answer in {arguments.get('timeout', 0):.0f} s") from error
        if isinstance(error, PASSING):
            if attempt == self._attempts or not self._pause(attempt, error):
                raise InfraError(f"model '{spec}': {attempt} attempts failed: {said(error)}") from error
            return
        if is_overflow(error):
            self._budget.exhaust("the conversation no longer fits into the model's context")
        raise InfraError(f"model '{spec}': {said(error)}") from error

    def _pause(self, attempt: int, error: openai.OpenAIError) -> bool:
        """Wait before the next attempt; False if there is no time for it."""
        pause_s = retry_after_s(error) or FIRST_PAUSE_S * 2 ** (attempt - 1)
        if pause_s > MAX_PAUSE_S:
            return False
        deadline = Deadline.after(min(pause_s, self._budget.deadline.remaining_s))
        wait_until(lambda: None, deadline, interval_s=pause_s)
        return not self._budget.deadline.has_passed

    def _count(self, reply: Reply, note: Callable[[str, Attribute], Any]) -> None:
        self._budget.add_tokens(reply.input_tokens, reply.output_tokens)
        for names, count in zip(_COUNTS, (reply.input_tokens, reply.output_tokens), strict=True):
            for name in names:
                if count is not None:
                    note(name, count)
        limits = self._budget.limits
        limit = f"${limits.cost_usd:g}" if limits.tokens is None and limits.cost_usd is not None else limits.tokens
        if limit is not None and reply.input_tokens is None and not reply.is_refusal:
            spec = self._built.spec
            raise InfraError(f"model '{spec}' does not tell its token usage, so the limit of {limit} cannot be kept")


_COUNTS = (
    ("llm.token_count.prompt", "gen_ai.usage.input_tokens"),
    ("llm.token_count.completion", "gen_ai.usage.output_tokens"),
)
