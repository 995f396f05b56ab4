"""What the clients of APIs raise, told apart: what passes by itself, what will not, and what is the model's answer."""

import openai

from deskfork.core.errors import TransportError

PASSING = (openai.RateLimitError, openai.InternalServerError, openai.ConflictError, openai.APIConnectionError)
"""Litellm's errors are kinds of openai's."""
GARBAGE = (AttributeError, TypeError, LookupError, ValueError, RuntimeError, AssertionError, NameError)
"""What smolagents and the clients raise when an answer is not of the agreed form; the last for a tool call that is a
string, as smolagents 1.26 then reads a variable that it has not set."""
_WITHHELD = ("content_filter", "content_policy_violation")


def said(error: Exception) -> str:
    """Return the error in a line, with a way out if there is one."""
    status = getattr(error, "status_code", None)
    hint = "; check the API key in the environment" if status in (401, 403) else ""
    return f"{' '.join(str(error).split())[:400]}{hint}"


def is_overflow(error: openai.OpenAIError) -> bool:
    """Whether the conversation no longer fits into the model's context."""
    known = (
        getattr(error, "code", None) == "context_length_exceeded"
        or type(error).__name__ == "ContextWindowExceededError"
    )
    return known or (isinstance(error, openai.BadRequestError) and "context length" in str(error).lower())


def is_refusal(error: openai.OpenAIError) -> bool:
    """Whether a filter before the model would not let it answer: that is told by an error, but is an answer."""
    return isinstance(error, openai.BadRequestError) and (
        getattr(error, "code", None) in _WITHHELD or type(error).__name__ == "ContentPolicyViolationError"
    )


def bound_hit(error: BaseException) -> TransportError | None:
    """Return the bound on answers that the clients wrapped as one more lost connection; None if it is a real one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, TransportError):
        cause = cause.__cause__ or cause.__context__
    return cause


def retry_after_s(error: openai.OpenAIError) -> float | None:
    """Return how long the API asks to wait, seconds."""
    response = getattr(error, "response", None)
    value = response.headers.get("retry-after", "") if response is not None else ""
    return float(value) if value.replace(".", "", 1).isdecimal() else None
