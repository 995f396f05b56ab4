"""Deadlines: the only two ways in which deskfork waits."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Deadline:
    """A point in monotonic time that several waits share."""

    expires_at: float
    timeout_s: float

    @classmethod
    def after(cls, timeout_s: float) -> Self:
        """Make the deadline that lies `timeout_s` seconds ahead."""
        return cls(time.monotonic() + timeout_s, timeout_s)

    @property
    def remaining_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.expires_at - time.monotonic())

    @property
    def has_passed(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self.expires_at


def wait_until(probe: Callable[[], T | None], deadline: Deadline, *, interval_s: float = 0.02) -> T | None:
    """Call `probe` until it returns something other than None or False.

    Args:
        probe: Asked at once, then every `interval_s`; must itself be bounded in time.
        deadline: When to give up.
        interval_s: Pause between two calls, seconds.

    Returns:
        What `probe` returned, or None if the deadline passed first.
    """
    while True:
        value = probe()
        if value is not None and value is not False:
            return value
        if deadline.has_passed:
            return None
        time.sleep(min(interval_s, deadline.remaining_s))
