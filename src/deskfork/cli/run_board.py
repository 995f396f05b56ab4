"""What a run has reached, and how that looks on a terminal."""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import ConsoleRenderable, Group
from rich.text import Text

from deskfork.records.trial import TrialResult
from deskfork.report.render import make_table
from deskfork.trial.plan import TrialEvent

_SHOWN = 16
"""Trials at work that are shown; a terminal has so many lines."""


@dataclass
class _Running:
    event: TrialEvent
    since_s: float


class RunBoard:
    """Counts a run's trials by state and knows what each one that is at work does; not safe for several threads."""

    def __init__(self, planned: int, ended: Iterable[TrialResult] = ()) -> None:
        """Begin to count.

        Args:
            planned: How many trials there are.
            ended: Of a resumed run, those that are over.
        """
        self.planned = planned
        self._began_s = time.monotonic()
        self._running: dict[tuple[str, str, int], _Running] = {}
        self._states = Counter[str]()
        self._cost_usd = 0.0
        self._unpriced = 0
        for result in ended:
            self._states[result.status.value] += 1
            self._charge(result)
        self._ended_before = self.ended

    @property
    def ended(self) -> int:
        """How many trials are over."""
        return self._states.total()

    def note(self, event: TrialEvent) -> None:
        """Take in what a trial has reached."""
        if event.result is not None:
            self._charge(event.result)
            if event.is_last:
                self._running.pop(event.plan.key, None)
                self._states[event.result.status.value] += 1
            return
        known = self._running.get(event.plan.key)
        self._running[event.plan.key] = _Running(event, known.since_s if known else time.monotonic())

    def summary(self) -> str:
        """Return one line: trials by state, rate, time left, cost so far."""
        waiting = self.planned - self.ended - len(self._running)
        counts = [("running", len(self._running)), ("waiting", waiting), *sorted(self._states.items())]
        parts = [f"{self.ended}/{self.planned} trials", ", ".join(f"{n} {state}" for state, n in counts if n)]
        done, passed_s = self.ended - self._ended_before, time.monotonic() - self._began_s
        if done and passed_s:
            per_minute = 60.0 * done / passed_s
            parts.append(f"{per_minute:.1f} a minute")
            if left := self.planned - self.ended:
                parts.append(f"about {span(60.0 * left / per_minute)} left")
        unknown = f" and {self._unpriced} of unknown cost" if self._unpriced else ""
        return " · ".join([*filter(None, parts), f"${self._cost_usd:.2f}{unknown}"])

    def render(self) -> ConsoleRenderable:
        """Return the live table."""
        rows = []
        for trial in list(self._running.values())[:_SHOWN]:
            event = trial.event
            step = str(event.step) if event.step else ""
            name = f"{event.plan.task.id} ({event.plan.repeat + 1})" if event.plan.repeat else event.plan.task.id
            passed = span(time.monotonic() - trial.since_s)
            rows.append([name, event.plan.agent.name, event.phase, step, passed])
        summary = Text(self.summary(), "bold")
        if not rows:
            return summary
        return Group(make_table(["task", "agent", "phase", "step", "for"], rows), summary)

    def _charge(self, result: TrialResult) -> None:
        if result.cost_usd is None:
            self._unpriced += 1
        else:
            self._cost_usd += result.cost_usd


def span(seconds: float) -> str:
    """Return a length of time as people say it: 42 s, 5 min, 3 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
