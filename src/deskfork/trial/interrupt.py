"""Ctrl-C, and its siblings by which a run is told to end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Interruption:
    """Whether, and by which signal, a run was told to end."""

    signal_number: int | None = None


@contextmanager
def ends_on_signals(cancelled: Event) -> Iterator[Interruption]:
    """Within the `with` block the first SIGINT, SIGTERM or SIGHUP sets `cancelled` and raises KeyboardInterrupt.

    Later ones are ignored: what is under way then is the clean-up, and all of its waits have deadlines. Outside of the
    main thread, where Python delivers no signals, nothing changes.
    """
    seen = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return

    def interrupt(number: int, _frame: FrameType | None) -> None:
        if seen.signal_number is None:
            seen.signal_number = number
            cancelled.set()
            raise KeyboardInterrupt

    # What nohup, or a shell's background job, ignores stays ignored.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
