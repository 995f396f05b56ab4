"""What an agent may use up; hitting a limit is an outcome, not an error."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import Field

from deskfork.agent.models.built import Price
from deskfork.core.config import StrictModel
from deskfork.core.waiting import Deadline
from deskfork.records.trial import TokenUsage


class Limits(StrictModel):
    """When an agent is stopped."""

    steps: int = Field(default=15, ge=1)
    """Turns of the agent."""
    seconds: float = Field(default=1800.0, gt=0)
    """Wall-clock time from the agent's start; also bounds the running cell and the running model call."""
    tokens: int | None = Field(default=None, ge=1)
    """Input and output tokens together; None for no limit."""
    cost_usd: float | None = Field(default=None, gt=0)
    """What the model may cost, at list price; None for no limit."""


def _nothing() -> str:
    return ""


@dataclass
class Budget:
    """What is left of the limits while an agent runs."""

    limits: Limits
    outside: Callable[[], str] = _nothing
    """Says why the agent may not go on although it is within its limits; empty while it may."""
    price: Price | None = None
    """The model's; a limit of cost needs one."""
    deadline: Deadline = field(init=False)
    steps: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    _full: str = ""
    _has_untold: bool = False

    def __post_init__(self) -> None:
        self.deadline = Deadline.after(self.limits.seconds)

    def add_tokens(self, input_tokens: int | None, output_tokens: int | None) -> None:
        """Count what one model call billed; None when the model did not tell."""
        self._has_untold |= input_tokens is None or output_tokens is None
        self.input_tokens += input_tokens or 0
        self.output_tokens += output_tokens or 0

    def usage(self) -> TokenUsage | None:
        """Return what all calls billed; None when one of them did not tell."""
        if self._has_untold:
            return None
        return TokenUsage(input_tokens=self.input_tokens, output_tokens=self.output_tokens)

    def exhaust(self, reason: str) -> None:
        """Declare that the agent cannot go on, for a reason that only the model knows of."""
        self._full = self._full or reason

    def spent(self) -> str:
        """Return which limit was hit, in words; empty when none was."""
        if why := self._full or self.outside():
            return why
        if self.steps >= self.limits.steps:
            return f"limit of {self.limits.steps} steps"
        if self.deadline.has_passed:
            return f"limit of {self.limits.seconds:g} seconds"
        used = self.input_tokens + self.output_tokens
        if self.limits.tokens is not None and used >= self.limits.tokens:
            return f"limit of {self.limits.tokens} tokens ({used} used)"
        if self.limits.cost_usd is not None and self.price is not None:
            cost_usd = self.price.cost_usd(self.input_tokens, self.output_tokens)
            if cost_usd >= self.limits.cost_usd:
                return f"limit of ${self.limits.cost_usd:g} (${cost_usd:.4g} used)"
        return ""

    @property
    def is_out_of_time(self) -> bool:
        """Whether a call that was under way failed because the agent may not go on."""
        return bool(self._full) or self.deadline.has_passed
