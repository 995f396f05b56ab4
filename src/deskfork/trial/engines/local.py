"""Runs jobs in this process: one after the other, or several at the same time in threads."""

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

from deskfork.core.waiting import Deadline, wait_until

T = TypeVar("T")

_END_TIMEOUT_S = 8.0
"""For threads to end after a cancellation. Closing a sandbox does not wake every call that waits for it."""


def run_jobs(
    jobs: Sequence[Callable[[], T]],
    *,
    parallel: int,
    may_begin: Callable[[], bool],
    cancelled: threading.Event,
    on_cancel: Callable[[], None],
) -> list[T]:
    """Run `jobs` and return what they returned, in the order of `jobs`.

    One at a time they run in the calling thread, so that Ctrl-C reaches whatever they wait for.

    Args:
        jobs: Must not raise anything but KeyboardInterrupt.
        parallel: How many may run at the same time.
        may_begin: Asked before each job; once it says no, none is started any more.
        cancelled: Set on KeyboardInterrupt, and then no further job is started; those without a result are left out.
        on_cancel: Called on KeyboardInterrupt while threads are at work; makes most of them end soon. A thread that
            does not is left alone, and its job has no result.
    """
    done: dict[int, T] = {}
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in range(len(jobs)):
        waiting.put(number)

    def work() -> None:
        while not cancelled.is_set() and may_begin():
            try:
                number = waiting.get_nowait()
            except Empty:
                return
            done[number] = jobs[number]()

    try:
        if parallel == 1:
            work()
        else:
            _run_in_threads(work, min(parallel, len(jobs)), on_cancel)
    except KeyboardInterrupt:
        cancelled.set()
    return [done[number] for number in sorted(done.copy())]


def _run_in_threads(work: Callable[[], None], count: int, on_cancel: Callable[[], None]) -> None:
    # Daemons: one that is stuck in a model's API must not keep a cancelled run from ending.
    threads = [threading.Thread(target=work, name=f"trial-{n}", daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(timeout=0.5)
    except KeyboardInterrupt:
        on_cancel()
        wait_until(lambda: not any(t.is_alive() for t in threads), Deadline.after(_END_TIMEOUT_S), interval_s=0.1)
        raise
