"""Ctrl-C, and its siblings by which a run is told to end."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from types import FrameType

_SHOW_CURSOR = "\x1b[?25h"
"""A live table hides it, and gets no chance to show it again."""
_SAME_S = 0.5
"""Signals that come together are one: a terminal that closes is told of by the kernel and by the shell."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Interruption:
    """Whether, and by which signal, a run was told to end."""

    signal_number: int | None = None
    at_s: float = 0.0
    """When, in monotonic time."""


@contextmanager
def ends_on_signals(cancelled: Event) -> Iterator[Interruption]:
    """Within the `with` block the first SIGINT, SIGTERM or SIGHUP sets `cancelled` and raises KeyboardInterrupt.

    What is under way then is that running trials are recorded and their sandboxes closed. A second signal ends the
    process at once, as if it had been killed: a run survives that, and sandboxes end with their owner. Outside of the
    main thread, where Python delivers no signals, nothing changes.
    """
    seen = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return

    def interrupt(number: int, _frame: FrameType | None) -> None:
        if seen.signal_number is None:
            seen.signal_number, seen.at_s = number, time.monotonic()
            cancelled.set()
            raise KeyboardInterrupt
        if time.monotonic() - seen.at_s < _SAME_S:
            return
        if sys.stderr.isatty():
            sys.stderr.write(_SHOW_CURSOR)
            sys.stderr.flush()
        os._exit(128 + number)

    # What nohup, or a shell's background job, ignores stays ignored.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
