"""Tells on stderr how far a run is: a live table on a terminal, lines elsewhere."""

import threading
from typing import Self

from rich.console import Console, ConsoleRenderable
from rich.live import Live
from rich.text import Text

from deskfork.cli.run_board import RunBoard
from deskfork.records.trial import TrialResult
from deskfork.report.render import printable
from deskfork.trial.plan import TrialEvent
from deskfork.trial.run import Beginning

_REDRAWN_PER_S = 4


class RunProgress:
    """Follows a run by its events, which come from several threads."""

    def __init__(self, console: Console | None = None) -> None:
        """Begin.

        Args:
            console: Where to tell; stderr by default.
        """
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._live: Live | None = None
        self._board = RunBoard(0)
        self._lock = threading.Lock()

    def begin(self, run: Beginning) -> None:
        """Show how much there is to do."""
        prepared = run.prepared
        self._board = RunBoard(len(prepared.plans), run.ended)
        if prepared.skipped:
            self._say(f"{len(prepared.skipped)} tasks are skipped, the table says why")
        if run.slots.warning:
            self._say(run.slots.warning)
        before = f", {len(run.ended)} of them over" if run.ended else ""
        at_once = f", {run.slots.count} at a time" if run.slots.count > 1 else ""
        self._say(f"{self._board.planned} trials{before}{at_once}, records in {run.run_dir}")
        if self._console.is_terminal:
            self._stop()
            self._live = Live(
                get_renderable=self._draw, console=self._console, transient=True, refresh_per_second=_REDRAWN_PER_S
            )
            self._live.start()

    def notify(self, event: TrialEvent) -> None:
        """Show what a trial has reached."""
        with self._lock:
            self._board.note(event)
            ended, planned = self._board.ended, self._board.planned
        if event.result is not None:
            name = f"{event.plan.task.id} ({event.plan.agent.name})"
            self._say(f"[{ended}/{planned}] {name}: {_outcome(event.result, is_last=event.is_last)}")

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Take the table away."""
        self._stop()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self) -> ConsoleRenderable:
        with self._lock:
            return self._board.render()

    def _say(self, text: str) -> None:
        self._console.print(Text(printable(text)))


def _outcome(result: TrialResult, *, is_last: bool) -> str:
    score = "absent" if result.score is None else f"{result.score:.3f}"
    if result.strict_score not in (None, result.score):
        score += f" (strict: {result.strict_score:.3f})"
    again = "" if is_last else "; trying once more"
    why = f" ({result.error})" if result.error else ""
    return f"{result.status.value}, score {score}, {result.steps} steps, {result.duration_s:.1f} s{why}{again}"
