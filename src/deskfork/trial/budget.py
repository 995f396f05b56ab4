"""What a whole run may use; reaching it is an outcome, not an error."""

import threading

from pydantic import Field

from deskfork.agent.limits import Limits
from deskfork.agent.models.built import Price
from deskfork.core.config import StrictModel
from deskfork.core.waiting import Deadline
from deskfork.records.trial import TokenUsage


class RunBudget(StrictModel):
    """When a run begins no further trial and ends those that are at work; None for no bound."""

    seconds: float | None = Field(default=None, gt=0)
    """Wall-clock time from the start of the first trial; counted anew when a run is resumed."""
    tokens: int | None = Field(default=None, ge=1)
    """Input and output tokens of all attempts together, those before a resume included."""
    cost_usd: float | None = Field(default=None, gt=0)
    """At list price, of all attempts together, those before a resume included."""


class RunLedger:
    """What a run has used so far; trials in several threads book on it."""

    def __init__(self, budget: RunBudget, *, tokens: int = 0, cost_usd: float = 0.0) -> None:
        """Begin to count time.

        Args:
            budget: What may be used.
            tokens: What was used before.
            cost_usd: What was spent before.
        """
        self._budget = budget
        self._tokens = tokens
        self._cost_usd = cost_usd
        self._deadline = Deadline.after(budget.seconds) if budget.seconds is not None else None
        self._lock = threading.Lock()

    def book(self, tokens: TokenUsage | None, price: Price | None) -> None:
        """Count what one step billed; what is not known counts as nothing, and no budget is kept with it."""
        if tokens is None:
            return
        with self._lock:
            self._tokens += tokens.total
            if price is not None:
                self._cost_usd += price.cost_usd(tokens.input_tokens, tokens.output_tokens)

    def spent(self) -> str:
        """Return which budget was reached, in words; empty when none was."""
        budget = self._budget
        if self._deadline is not None and self._deadline.has_passed:
            return f"run budget of {budget.seconds:g} seconds reached"
        if budget.tokens is not None and self._tokens >= budget.tokens:
            return f"run budget of {budget.tokens} tokens reached ({self._tokens} used)"
        if budget.cost_usd is not None and self._cost_usd >= budget.cost_usd:
            return f"run budget of ${budget.cost_usd:g} reached (${self._cost_usd:.4g} used)"
        return ""

    def within(self, limits: Limits) -> Limits:
        """Return the limits of a trial that begins now, no wider than what is left of the run's budget."""
        left: dict[str, float] = {}
        if self._deadline is not None:
            left["seconds"] = min(limits.seconds, max(self._deadline.remaining_s, 1e-3))
        if self._budget.tokens is not None:
            left["tokens"] = min(limits.tokens or self._budget.tokens, max(self._budget.tokens - self._tokens, 1))
        if self._budget.cost_usd is not None:
            rest = max(self._budget.cost_usd - self._cost_usd, 1e-9)
            left["cost_usd"] = min(limits.cost_usd or rest, rest)
        return limits.model_copy(update=left)
