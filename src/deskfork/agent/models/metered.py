"""The model as the agent's loop calls it: timed, traced, bounded, and with failures that are told apart."""

import base64
import io
from typing import Any

import openai
from PIL.Image import Image
from smolagents import ChatMessage, Model

from deskfork.agent.executor import SPAN_TEXT_CHARS
from deskfork.agent.limits import Budget
from deskfork.agent.meter import StepMeter
from deskfork.agent.models.specs import BuiltModel
from deskfork.agent.text import encodable
from deskfork.core.errors import InfraError
from deskfork.core.tracing import span
from deskfork.core.waiting import Deadline, wait_until

FIRST_PAUSE_S = 1.0
MAX_PAUSE_S = 60.0
_PASSING = (openai.RateLimitError, openai.InternalServerError, openai.ConflictError, openai.APIConnectionError)
# What smolagents and the clients raise when an answer is not of the agreed form.
_GARBAGE = (AttributeError, TypeError, LookupError, ValueError, RuntimeError, AssertionError)


class MeteredModel(Model):  # type: ignore[misc]  # smolagents ships no types
    """Wraps a model for one run of an agent."""

    def __init__(self, built: BuiltModel, budget: Budget, meter: StepMeter, *, attempts: int = 4) -> None:
        super().__init__(model_id=built.spec)
        self._built = built
        self._budget = budget
        self._meter = meter
        self._attempts = attempts
        self._encoded: dict[int, tuple[Image, str]] = {}

    def generate(
        self,
        messages: list[Any],
        stop_sequences: list[str] | None = None,
        response_format: dict[str, str] | None = None,
        tools_to_call_from: list[Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call the model once, or a few times while its API is busy; compressing images counts as its time.

        Raises:
            InfraError: The model could not be asked, or did not answer as agreed.
        """
        name = self._built.spec.partition(":")[2].partition("@")[0]
        attributes = {"openinference.span.kind": "LLM", "llm.model_name": name}
        attributes |= {"gen_ai.operation.name": "chat", "gen_ai.request.model": name}
        with span("model call", attributes) as current, self._meter.charge("model"):
            if self._built.is_remote:
                messages = self._with_data_urls(messages)
            reply = self._ask(messages, stop_sequences, response_format, kwargs)
            usage = reply.token_usage
            used = (usage.input_tokens or 0, usage.output_tokens or 0) if usage else (0, 0)
            self._budget.add_tokens(*used)
            for keys, count in zip(_COUNTS, used, strict=True):
                for key in keys:
                    current.set_attribute(key, count)
            current.set_attribute("output.value", str(reply.content)[:SPAN_TEXT_CHARS])
        return reply

    def _ask(
        self, messages: list[Any], stop: list[str] | None, form: dict[str, str] | None, extra: dict[str, Any]
    ) -> Any:
        """Retry what passes by itself, a busy or unreachable API; at worst a lost answer is paid for twice."""
        for attempt in range(1, self._attempts + 1):
            try:
                if self._built.is_remote:
                    extra["timeout"] = max(1.0, min(self._built.timeout_s, self._budget.deadline.remaining_s))
                reply = self._built.model.generate(messages, stop_sequences=stop, response_format=form, **extra)
                return self._checked(reply)
            except openai.APITimeoutError as exc:
                raise InfraError(f"model '{self._built.spec}': no answer in {extra.get('timeout', 0):.0f} s") from exc
            except _PASSING as exc:
                if attempt == self._attempts or not self._pause(attempt, exc):
                    raise InfraError(f"model '{self._built.spec}': {attempt} attempts failed: {_said(exc)}") from exc
            except openai.OpenAIError as exc:
                if _is_overflow(exc):
                    self._budget.exhaust("the conversation no longer fits into the model's context")
                raise InfraError(f"model '{self._built.spec}': {_said(exc)}") from exc
            except _GARBAGE as exc:
                raise InfraError(f"model '{self._built.spec}': its answer was not understood: {exc!r}"[:500]) from exc
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _checked(self, reply: Any) -> Any:
        # A refusal has no text. smolagents would take that for an empty program; this is a step without code to it.
        reply.content = encodable(str(reply.content or "")).strip() or "(empty answer)"
        return reply

    def _pause(self, attempt: int, error: openai.APIError) -> bool:
        """Wait before the next attempt; False if there is no time for it."""
        pause_s = _retry_after_s(error) or FIRST_PAUSE_S * 2 ** (attempt - 1)
        if pause_s > MAX_PAUSE_S:
            return False
        deadline = Deadline.after(min(pause_s, self._budget.deadline.remaining_s))
        wait_until(lambda: None, deadline, interval_s=pause_s)
        return not self._budget.deadline.has_passed

    def _with_data_urls(self, messages: list[Any]) -> list[Any]:
        """Replace images by data URLs: smolagents would copy and compress each image again for every call."""
        fresh: dict[int, tuple[Image, str]] = {}
        converted = []
        for message in messages:
            parts = message.content
            if isinstance(parts, list) and any(part["type"] == "image" for part in parts):
                parts = [self._url_part(part, fresh) if part["type"] == "image" else part for part in parts]
                message = ChatMessage(role=message.role, content=parts)
            converted.append(message)
        self._encoded = fresh
        return converted

    def _url_part(self, part: dict[str, Any], fresh: dict[int, tuple[Image, str]]) -> dict[str, Any]:
        image = part["image"]
        known = self._encoded.get(id(image))
        fresh[id(image)] = known if known is not None and known[0] is image else (image, _data_url(image))
        return {"type": "image_url", "image_url": {"url": fresh[id(image)][1]}}


_COUNTS = (
    ("llm.token_count.prompt", "gen_ai.usage.input_tokens"),
    ("llm.token_count.completion", "gen_ai.usage.output_tokens"),
)


def _data_url(image: Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", compress_level=1)  # level 6 takes several times as long for a few per cent
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _said(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    hint = "; check the API key in the environment" if status in (401, 403) else ""
    return f"{' '.join(str(error).split())[:400]}{hint}"


def _is_overflow(error: openai.OpenAIError) -> bool:
    known = (
        getattr(error, "code", None) == "context_length_exceeded"
        or type(error).__name__ == "ContextWindowExceededError"
    )
    return known or (isinstance(error, openai.BadRequestError) and "context length" in str(error).lower())


def _retry_after_s(error: openai.APIError) -> float | None:
    response = getattr(error, "response", None)
    value = response.headers.get("retry-after", "") if response is not None else ""
    return float(value) if value.replace(".", "", 1).isdecimal() else None
