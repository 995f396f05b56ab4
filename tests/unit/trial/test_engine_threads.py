"""Guards work in threads: an interrupt loses none that is about to end, and what goes wrong in one comes out."""

import signal
import threading

import pytest

from deskfork.trial.engines.threads import run_in_threads


def test_after_an_interrupt_what_is_at_work_is_waited_for() -> None:
    cancelled, at_work, done = threading.Event(), threading.Barrier(3), []

    def interrupt() -> None:
        at_work.wait(20)
        signal.raise_signal(signal.SIGINT)

    def work() -> None:
        at_work.wait(20)
        assert cancelled.wait(20)
        threading.Event().wait(0.3)
        done.append("work")

    with pytest.raises(KeyboardInterrupt):
        run_in_threads([interrupt, work, work], name="test", on_cancel=cancelled.set, end_timeout_s=20)
    assert done == ["work", "work"]


def test_one_that_does_not_end_is_left_alone() -> None:
    never = threading.Event()
    works = [lambda: signal.raise_signal(signal.SIGINT), lambda: assert_set(never)]
    with pytest.raises(KeyboardInterrupt):
        run_in_threads(works, name="test", on_cancel=lambda: None, end_timeout_s=0.2)
    never.set()


def test_what_goes_wrong_in_a_thread_comes_out_once_all_have_ended() -> None:
    done = []

    def fail() -> None:
        raise ValueError("no good")

    with pytest.raises(ValueError, match="no good"):
        run_in_threads([fail, lambda: done.append(1)], name="test", on_cancel=lambda: None, end_timeout_s=1)
    assert done == [1]


def assert_set(event: threading.Event) -> None:
    assert event.wait(20)
