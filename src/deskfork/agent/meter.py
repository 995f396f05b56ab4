"""Where a step's time goes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Account = Literal["model", "guest", "observe"]


class StepMeter:
    """Adds up one step's seconds by who used them; the rest of the step is the framework's own."""

    def __init__(self) -> None:
        self._used: dict[Account, float] = {}
        self._started_at = time.monotonic()

    def start_step(self) -> None:
        """Forget the last step."""
        self._used = {"model": 0.0, "guest": 0.0, "observe": 0.0}
        self._started_at = time.monotonic()

    @contextmanager
    def charge(self, account: Account) -> Iterator[None]:
        """Book the time of the `with` block, also when it fails."""
        begun_at = time.monotonic()
        try:
            yield
        finally:
            self._used[account] = self._used.get(account, 0.0) + time.monotonic() - begun_at

    def split(self) -> dict[str, float]:
        """Return `model_s`, `guest_s`, `observe_s` and `framework_s` of the step so far."""
        used = {f"{account}_s": seconds for account, seconds in self._used.items()}
        used["framework_s"] = max(0.0, time.monotonic() - self._started_at - sum(used.values()))
        return used
