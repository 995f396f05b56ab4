"""Where a run's trials are carried out: the seam between a run and the machines that it has."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Protocol

from deskfork.records.paths import RunPaths
from deskfork.records.trial import TrialResult
from deskfork.sandbox.base import TemplateFacts
from deskfork.tasks.schema import Task
from deskfork.trial.budget import RunBudget, RunLedger
from deskfork.trial.capacity import Slots
from deskfork.trial.config import RunConfig
from deskfork.trial.plan import Notify, TrialPlan


@dataclass(frozen=True)
class Work:
    """What an engine is handed."""

    config: RunConfig
    paths: RunPaths
    """The run's directory, on the machine that called."""
    trials: Sequence[tuple[TrialPlan, Sequence[TrialResult]]]
    """Each trial that is not over, with its earlier attempts, in the order in which they are to begin."""
    slots: Slots
    ledger: RunLedger
    """As `Engine.ledger` made it."""
    notify: Notify
    cancelled: Event = field(default_factory=Event)
    """Set to end the run, also by the engine on KeyboardInterrupt."""


class Engine(Protocol):
    """Carries out trials; closing it ends every sandbox that it opened."""

    @property
    def provider(self) -> str:
        """Name of the provider that opens its sandboxes."""
        ...

    def templates(self, tasks: tuple[Task, ...]) -> tuple[TemplateFacts, ...]:
        """Return what the tasks' sandboxes are forked from.

        Raises:
            ConfigError: A template is not there.
        """
        ...

    def slots(self, config: RunConfig, templates: Sequence[TemplateFacts]) -> Slots:
        """Return how many trials run at the same time.

        Raises:
            ConfigError: As many as were asked for do not fit.
        """
        ...

    def ledger(self, budget: RunBudget, *, tokens: int, cost_usd: float) -> RunLedger:
        """Begin to count what the run uses, on top of what was used before."""
        ...

    def run(self, work: Work) -> list[TrialResult]:
        """Run trials until they are over, the ledger's budget is spent, or the run is cancelled.

        Returns:
            The last attempt of each trial that began; each attempt's records are in the run's directory.
        """
        ...

    def close(self) -> None:
        """End all sandboxes."""
        ...
