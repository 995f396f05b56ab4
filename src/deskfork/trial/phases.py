"""The phases of an attempt: told, timed and traced as they are entered."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from deskfork.core.tracing import span
from deskfork.trial.plan import TrialEvent, TrialPlan, TrialSetting

_TRACED = ("fork", "setup", "evaluate")
"""Phases with a span of their own; the agent's steps and closing lie right below the trial."""


class Phases:
    """Where an attempt is, and how long it was where."""

    def __init__(self, plan: TrialPlan, setting: TrialSetting, attempt: int) -> None:
        self.current = "fork"
        self.seconds: dict[str, float] = {}
        self._plan = plan
        self._setting = setting
        self._attempt = attempt

    @contextmanager
    def entered(self, name: str) -> Iterator[None]:
        """Be in the phase `name`.

        Raises:
            KeyboardInterrupt: The run was cancelled before.
        """
        self.check_cancelled()
        self.current = name
        self.tell(name)
        with span(name) if name in _TRACED else nullcontext(), self.timed(name):
            yield

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Count what is done meanwhile as `name`, wherever the attempt is."""
        begun_at = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = time.monotonic() - begun_at

    def check_cancelled(self) -> None:
        """Go no further when the run was cancelled.

        Raises:
            KeyboardInterrupt: It was.
        """
        if self._setting.cancelled.is_set():
            raise KeyboardInterrupt

    def tell(self, phase: str, step: int = 0) -> None:
        """Tell what the attempt has reached."""
        self._setting.notify(TrialEvent(self._plan, self._attempt, phase, step))
