"""What a model said in one call, in a form that does not depend on whose model it is."""

import json
import re
from typing import Any

from pydantic import Field, JsonValue
from smolagents import ChatMessage, MessageRole, TokenUsage
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

from deskfork.agent.text import encodable
from deskfork.core.config import StrictModel

MAX_REPLY_CHARS = 1024 * 1024
"""Of text, or of the tool calls' arguments; a longer reply is none that an agent acts on."""
MAX_TOOL_CALLS = 128
MAX_REFUSAL_CHARS = 500
EMPTY = "(empty answer)"
# What an agent might take for an action: tags, fences and JSON.
_ACTIONABLE = re.compile(r"[<>{}\[\]`]")


class ToolUse(StrictModel):
    """One tool call of a reply."""

    name: str
    arguments: JsonValue
    """An object; or text as the model gave it where that is none, which the agent is to be told."""


class Reply(StrictModel):
    """One answer of a model."""

    content: str | None
    """None when the model only called tools."""
    tool_calls: tuple[ToolUse, ...] = ()
    input_tokens: int | None = Field(default=None, ge=0)
    """None when the model did not say what it billed."""
    output_tokens: int | None = Field(default=None, ge=0)
    is_refusal: bool = False
    """The model, or a filter before it, would not answer."""


def read_reply(message: Any, *, is_remote: bool) -> Reply:
    """Return what a model's message says.

    An answer without text and calls becomes text that holds no action, and so does a refusal, whatever it says: it is
    the model's answer, and the step is one in which nothing is done. The same goes for an answer of a length that no
    agent means.

    Args:
        message: smolagents' ChatMessage.
        is_remote: It came from an API, which always bills some input: 0 tokens are unknown ones.

    Raises:
        AttributeError, TypeError, LookupError, ValueError: It is not of the form that smolagents promises.
    """
    usage = message.token_usage
    is_known = usage is not None and not (is_remote and not usage.input_tokens)
    counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens} if is_known else {}
    if refusal := _refusal(message.raw):
        return Reply(content=refusal, is_refusal=True, **counts)
    uses = tuple(_use(call.function) for call in message.tool_calls or ())
    text = encodable(_text(message.content)).strip()
    if too_long := _too_long(text, uses):
        return Reply(content=too_long, **counts)
    return Reply(content=text or (None if uses else EMPTY), tool_calls=uses, **counts)


def refused(why: str) -> Reply:
    """Return the reply of a model that was not let answer.

    Args:
        why: In the words of the model or of its API.
    """
    words = " ".join(_ACTIONABLE.sub(" ", encodable(why[: 4 * MAX_REFUSAL_CHARS])).split())[:MAX_REFUSAL_CHARS]
    return Reply(content=f"(the model refused: {words})", is_refusal=True)


def chat_message(reply: Reply) -> Any:
    """Return the reply as smolagents' ChatMessage; its tool calls have ids of our own, as a model's may be missing."""
    calls = [
        ChatMessageToolCall(
            id=f"call_{number:03d}",
            type="function",
            function=ChatMessageToolCallFunction(name=use.name, arguments=use.arguments),
        )
        for number, use in enumerate(reply.tool_calls, start=1)
    ]
    usage = None
    if reply.input_tokens is not None and reply.output_tokens is not None:
        usage = TokenUsage(input_tokens=reply.input_tokens, output_tokens=reply.output_tokens)
    return ChatMessage(role=MessageRole.ASSISTANT, content=reply.content, tool_calls=calls or None, token_usage=usage)


def parsed_arguments(given: Any) -> JsonValue:
    """Return a tool call's arguments as an object where they are one, else as text.

    What is not JSON (NaN, a number of a thousand digits) stays text: records have to be JSON.
    """
    text = given if isinstance(given, str) else json.dumps(given)
    try:
        found = json.loads(text, parse_constant=_refuse_constant)
        if isinstance(found, dict):
            # Escapes may stand for lone surrogates, which no file can hold.
            cleaned: dict[str, JsonValue] = json.loads(encodable(json.dumps(found, ensure_ascii=False)))
            return cleaned
    except (ValueError, RecursionError):
        pass
    return encodable(text)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _use(function: Any) -> ToolUse:
    return ToolUse(name=encodable(str(function.name or "")), arguments=parsed_arguments(function.arguments))


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if part.get("type") == "text")
    return str(content or "")


def _too_long(text: str, uses: tuple[ToolUse, ...]) -> str:
    if len(text) > MAX_REPLY_CHARS:
        return f"(an answer of {len(text)} characters, which is more than is taken)"
    if len(uses) > MAX_TOOL_CALLS:
        return f"(an answer with {len(uses)} tool calls, which is more than is taken)"
    arguments = sum(len(use.name) + len(json.dumps(use.arguments)) for use in uses)
    if arguments > MAX_REPLY_CHARS:
        return f"(an answer whose tool calls take {arguments} characters, which is more than is taken)"
    return ""


def _refusal(raw: Any) -> str:
    """Return what stands for the answer when OpenAI's form of it says that there is none; empty when there is one."""
    choices = getattr(raw, "choices", None)
    if not choices:
        return ""
    message = choices[0].message
    # litellm files away what is not of every provider.
    said = getattr(message, "refusal", None) or (getattr(message, "provider_specific_fields", None) or {}).get(
        "refusal"
    )
    if isinstance(said, str) and said:
        return refused(said).content or ""
    if getattr(choices[0], "finish_reason", None) == "content_filter":
        return refused("a content filter withheld its answer").content or ""
    return ""
