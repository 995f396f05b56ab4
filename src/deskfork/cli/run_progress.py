"""Tells on stderr how far a run is: a bar on a terminal, lines elsewhere."""

import threading
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from deskfork.records.trial import TrialResult
from deskfork.report.render import printable
from deskfork.trial.plan import TrialEvent
from deskfork.trial.prepare import Preparation


class RunProgress:
    """Follows a run by its events, which come from several threads."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._lock = threading.Lock()
        self._ended = 0
        self._planned = 0
        if self._console.is_terminal:
            columns = (
                SpinnerColumn(),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.description}"),
            )
            self._bar = Progress(*columns, console=self._console, transient=True)

    def begin(self, run_dir: Path, prepared: Preparation) -> None:
        """Show how much there is to do."""
        self._planned, self._ended = len(prepared.plans), 0
        if prepared.skipped:
            self._say(f"{len(prepared.skipped)} tasks are skipped, the table says why")
        self._say(f"{self._planned} trials, records in {run_dir}")
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task("", total=self._planned)
            self._bar.start()

    def notify(self, event: TrialEvent) -> None:
        """Show what a trial has reached."""
        with self._lock:
            name = f"{event.plan.task.id} ({event.plan.agent.name})"
            if event.result is None:
                self._show(f"{name}: {event.phase}{f', step {event.step}' if event.step else ''}")
                return
            self._ended += event.is_last
            self._say(f"[{self._ended}/{self._planned}] {name}: {_outcome(event.result, is_last=event.is_last)}")
            if self._bar is not None and self._task is not None and event.is_last:
                self._bar.advance(self._task)

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def _show(self, text: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=printable(text))

    def _say(self, text: str) -> None:
        self._console.print(Text(printable(text)))


def _outcome(result: TrialResult, *, is_last: bool) -> str:
    score = "absent" if result.score is None else f"{result.score:.3f}"
    if result.strict_score not in (None, result.score):
        score += f" (strict: {result.strict_score:.3f})"
    again = "" if is_last else "; trying once more"
    why = f" ({result.error})" if result.error else ""
    return f"{result.status.value}, score {score}, {result.steps} steps, {result.duration_s:.1f} s{why}{again}"
