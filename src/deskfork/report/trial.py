"""One trial, as a report shows it."""

from typing import Literal

from deskfork.core.config import StrictModel


class TrialReport(StrictModel):
    """One trial, by the attempt that counts."""

    task: str
    agent: str
    repeat: int
    attempts: int
    """How many there were."""
    status: str
    """A TrialStatus, or `unfinished`."""
    score: float | None
    """What the benchmark's own evaluator would give."""
    strict_score: float | None
    """What the task asks for."""
    difference: str = ""
    """Why the two scores differ; empty when they do not."""
    wording: Literal["abstract", "verbose"] | None = None
    """Of a task that is one of a pair."""
    steps: int | None
    duration_s: float | None
    reason: str
    """Why the score is absent, or 0 without judging; else what went wrong; else empty."""
    ending: str = ""
    cost_usd: float | None = None
    tokens: int | None = 0
    """None when the model did not tell."""
    trace_id: str | None = None
    folder: str
    """The attempt's folder, relative to the run's."""

    @property
    def has_difference(self) -> bool:
        """Whether the two scores differ."""
        are_there = self.score is not None and self.strict_score is not None
        return bool(self.difference) or (are_there and self.score != self.strict_score)
