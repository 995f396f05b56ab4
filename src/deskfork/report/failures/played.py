"""A trial as the rules see it."""

from collections.abc import Sequence
from dataclasses import dataclass

from deskfork.records.trajectory import StepRecord
from deskfork.records.trial import SelfReport
from deskfork.report.failures.deeds import Deeds, deeds_of
from deskfork.report.failures.files import FileWatch, Touched


@dataclass(frozen=True)
class Evidence:
    """One place in a trial where a rule holds."""

    step: int | None
    """From 1; None where the trial has no step that shows it."""
    detail: str = ""
    """A few words; names in it were written by the agent."""


@dataclass(frozen=True)
class Turn:
    """One step, and what is read out of it."""

    record: StepRecord
    deeds: Deeds
    touched: Touched
    screen_before: str | None
    """The screen that the step found, by its path; equal paths are equal pixels. None when it is not known."""

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return self.record.step

    @property
    def has_failed(self) -> bool:
        """Whether what the agent wanted was not done, or not all of it."""
        return bool(self.record.error or self.record.refused or self.record.timed_out)


@dataclass(frozen=True)
class Played:
    """One trial."""

    turns: tuple[Turn, ...]
    status: str
    ending: str = ""
    self_report: SelfReport | None = None
    is_success: bool | None = None
    """None when it has no score."""
    sees_each_screen: bool | None = None
    """Whether the agent is shown the screen after each step, without asking; None when that is not known."""

    @property
    def last_step(self) -> int | None:
        """Number of the last step, if there was one."""
        return self.turns[-1].number if self.turns else None


def turns_of(steps: Sequence[StepRecord]) -> tuple[Turn, ...]:
    """Return a trial's steps with what is read out of them."""
    files = FileWatch()
    before: str | None = None
    turns = []
    for step in steps:
        turns.append(Turn(step, deeds_of(step), files.touched(step), before))
        before = step.screen
    return tuple(turns)
