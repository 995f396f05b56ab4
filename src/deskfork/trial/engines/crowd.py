"""Trials that run elsewhere, as the machine sees them that collects their records."""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from deskfork.core.waiting import Deadline
from deskfork.records.trial import TrialResult, TrialStatus, Verdict
from deskfork.trial.engines.engine import Work
from deskfork.trial.engines.parcel import Arrival, Parcel, Piece, pack
from deskfork.trial.engines.threads import run_in_threads
from deskfork.trial.plan import TrialEvent, TrialPlan
from deskfork.trial.trial import is_over, losses

_LOOK_S = 0.2
"""How long to wait for an attempt's end before events are looked at."""
_END_TIMEOUT_S = 20.0
"""For attempts to hand in their records after a cancellation."""


@dataclass(frozen=True)
class Reached:
    """An attempt's news: a phase, or a step of its agent."""

    phase: str
    step: int


@dataclass(frozen=True)
class Lost:
    """An attempt that came to no end: its node is gone, or its process there."""

    why: str


@dataclass(frozen=True)
class Unplaced:
    """An attempt that never began: the nodes on which it could have run are gone."""


class Tasks(Protocol):
    """Attempts that run on other machines, each known by a ticket."""

    def begin(self, ticket: int, parcel: Parcel, attempt: int, earlier_losses: int) -> None:
        """Have an attempt run wherever there is room."""
        ...

    def messages(self) -> Sequence[tuple[int, Reached | Piece]]:
        """Return what came in since the last call, in order."""
        ...

    def ended(self, timeout_s: float) -> Sequence[tuple[int, str | Lost | Unplaced]]:
        """Wait for ends, and return the result of each as JSON; all its messages have come in by then.

        Raises:
            InfraError: There is nothing left on which an attempt could run.
        """
        ...

    def cancel(self) -> None:
        """Tell all attempts to come to their end."""
        ...


@dataclass
class _Running:
    plan: TrialPlan
    attempts: list[TrialResult]
    arrival: Arrival
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    phase: str = ""

    @property
    def number(self) -> int:
        return self.attempts[-1].attempt + 1 if self.attempts else 0


class Crowd:
    """Has trials run, as many at a time as fit, and collects what they leave."""

    def __init__(self, work: Work, tasks: Tasks, provider: str) -> None:
        self._provider = provider
        self._work = work
        self._tasks = tasks
        self._todo = deque((plan, list(earlier)) for plan, earlier in work.trials)
        self._running: dict[int, _Running] = {}
        self._tickets = 0
        self._results: list[TrialResult] = []

    def run(self) -> list[TrialResult]:
        """Run all trials; after KeyboardInterrupt only those are waited for that are at work.

        Raises:
            InfraError: The cluster failed as a whole, or records could not be written.
        """
        # In a thread: an interrupt, which hits the main thread, must not tear what is being written.
        with suppress(KeyboardInterrupt):
            run_in_threads(
                [self._go_on], name="collector", on_cancel=self._work.cancelled.set, end_timeout_s=2 * _END_TIMEOUT_S
            )
        return list(self._results)

    def _go_on(self) -> None:
        while not self._work.cancelled.is_set():
            while self._todo and len(self._running) < self._work.slots.count and not self._work.ledger.spent():
                self._begin(*self._todo.popleft())
            if not self._running:
                return
            self._collect()
        self._tasks.cancel()
        deadline = Deadline.after(_END_TIMEOUT_S)
        while self._running and not deadline.has_passed:
            self._collect()

    def _begin(self, plan: TrialPlan, attempts: list[TrialResult]) -> None:
        number = attempts[-1].attempt + 1 if attempts else 0
        paths = self._work.paths.attempt(*plan.key, number)
        self._tickets += 1
        self._running[self._tickets] = _Running(plan, attempts, Arrival(paths))
        self._tasks.begin(self._tickets, pack(plan), number, losses(attempts))
        self._work.notify(TrialEvent(plan, number, "waiting"))

    def _collect(self) -> None:
        ended = self._tasks.ended(_LOOK_S)
        for ticket, message in self._tasks.messages():
            if (running := self._running.get(ticket)) is None:
                continue
            if isinstance(message, Piece):
                running.arrival.add(message)
            else:
                running.phase = message.phase
                self._work.notify(TrialEvent(running.plan, running.number, message.phase, message.step))
        for ticket, outcome in ended:
            self._finish(self._running.pop(ticket), outcome)

    def _finish(self, running: _Running, outcome: str | Lost | Unplaced) -> None:
        plan, number = running.plan, running.number
        if isinstance(outcome, Unplaced):
            self._todo.appendleft((plan, running.attempts))
            return
        if isinstance(outcome, Lost):
            result = self._lost(running, outcome)
            running.arrival.finish(result)
        else:
            result = TrialResult.model_validate_json(outcome)
            running.arrival.finish()
        running.attempts.append(result)
        is_last = is_over(running.attempts) or self._work.cancelled.is_set() or bool(self._work.ledger.spent())
        self._work.notify(TrialEvent(plan, number, "ended", result.steps, result, is_last))
        if is_last:
            self._results.append(result)
        else:
            self._todo.appendleft((plan, running.attempts))

    def _lost(self, running: _Running, lost: Lost) -> TrialResult:
        why = f"lost with its node{f' in {running.phase}' if running.phase else ''}: {lost.why}"
        return TrialResult(
            task=running.plan.task.id,
            agent=running.plan.agent.name,
            model=running.plan.model,
            repeat=running.plan.repeat,
            attempt=running.number,
            status=TrialStatus.INFRA_ERROR,
            score=None,
            verdict=Verdict(reason=why),
            error=why,
            tokens=None,
            duration_s=(datetime.now(UTC) - running.started_at).total_seconds(),
            phases_s={},
            action_mix={},
            started_at=running.started_at,
            provider=self._provider,
            template_digest="",
        )
