"""Work in threads, of which an interrupt of the main thread tears and loses nothing."""

import threading
from collections.abc import Callable, Sequence

from deskfork.core.waiting import Deadline, wait_until


def run_in_threads(
    works: Sequence[Callable[[], None]], *, name: str, on_cancel: Callable[[], None], end_timeout_s: float
) -> None:
    """Run each of `works` in a thread of its own until all have ended.

    Args:
        works: What to run.
        name: Of the threads, before their numbers.
        on_cancel: Called on KeyboardInterrupt; makes the threads end soon.
        end_timeout_s: For them to end then; one that does not is left alone.

    Raises:
        KeyboardInterrupt: The caller was interrupted.
        Exception: The first that came out of a thread.
    """
    # Not by join and is_alive: in Python 3.11 an interrupted join takes a thread that works for one that has ended.
    ended: list[threading.Event] = []
    failures: list[Exception] = []

    def work_and_tell(work: Callable[[], None], has_ended: threading.Event) -> None:
        try:
            work()
        except Exception as error:
            failures.append(error)
        finally:
            has_ended.set()

    try:
        for number, work in enumerate(works):
            ended.append(threading.Event())
            # Daemons: one that is stuck in a model's API must not keep a cancelled run from ending.
            given = work, ended[-1]
            threading.Thread(target=work_and_tell, args=given, name=f"{name}-{number}", daemon=True).start()
        for has_ended in ended:
            while not has_ended.wait(timeout=0.5):
                pass
    except KeyboardInterrupt:
        on_cancel()
        wait_until(lambda: all(one.is_set() for one in ended), Deadline.after(end_timeout_s), interval_s=0.1)
        if not failures:
            raise
    if failures:
        raise failures[0]
