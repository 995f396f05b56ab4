"""One call of a model, as the step's record tells of it."""

from dataclasses import dataclass

from pydantic import JsonValue

from deskfork.agent.models.context import ContextCut
from deskfork.agent.models.reply import Reply


@dataclass(frozen=True)
class Call:
    """One call of a model."""

    content: str
    """What it said; empty when it only called tools."""
    tool_calls: tuple[tuple[str, JsonValue], ...]
    """Name and arguments of each: an object, or text as the model gave it where that is none."""
    input_tokens: int | None
    """None when the model did not say what it billed."""
    output_tokens: int | None
    is_refusal: bool
    """The model, or a filter before it, would not answer; `content` tells so and holds no action."""
    is_cached: bool
    """It came from the response cache; the tokens are those that it took when it was first given."""
    attempts: int
    """How often the model was asked; 0 for a cached answer."""
    cut: ContextCut
    """What the model was not shown."""


def call_of(reply: Reply, *, attempts: int, cut: ContextCut, is_cached: bool = False) -> Call:
    """Return the call that brought this reply."""
    return Call(
        content=reply.content or "",
        tool_calls=tuple((use.name, use.arguments) for use in reply.tool_calls),
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        is_refusal=reply.is_refusal,
        is_cached=is_cached,
        attempts=attempts,
        cut=cut,
    )
