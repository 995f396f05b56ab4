"""Guards `Guest.exec`: a program's failure must be a value, and no program may outlive its deadline."""

from pathlib import PurePosixPath

import pytest

from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import GUEST_DESKTOP, Sandbox

SOON_S = 30.0
"""Longer than anything short takes in an emulated guest."""


def test_an_unknown_program_is_a_result_not_an_error(sandbox: Sandbox) -> None:
    assert sandbox.exec(["no-such-program"], timeout_s=SOON_S).exit_code == 127


def test_exit_code_and_both_streams_arrive_apart(sandbox: Sandbox) -> None:
    done = sandbox.exec(["bash", "-c", "echo out; echo err >&2; exit 3"], timeout_s=SOON_S)
    assert (done.exit_code, done.stdout, done.stderr, done.timed_out) == (3, "out\n", "err\n", False)


def test_arguments_reach_the_program_as_they_are(sandbox: Sandbox) -> None:
    hard = ["", "two words", "$HOME", "`id`", "a'b\"c", "*", "ü→", "line\nbreak", "-n", "\\"]
    done = sandbox.exec(["python3", "-c", "import sys; print(sys.argv[1:])", *hard], timeout_s=SOON_S)
    assert done.stdout == f"{hard}\n"


def test_env_and_cwd_are_set(sandbox: Sandbox) -> None:
    script = "import os; print(os.environ['GREETING'], os.path.basename(os.getcwd()))"
    done = sandbox.exec(["python3", "-c", script], env={"GREETING": "a b$c"}, cwd=GUEST_DESKTOP, timeout_s=SOON_S)
    assert done.stdout == "a b$c Desktop\n"


def test_without_cwd_a_program_starts_at_home(sandbox: Sandbox) -> None:
    assert sandbox.exec(["bash", "-c", "test $PWD = $HOME"], timeout_s=SOON_S).exit_code == 0


def test_a_missing_working_directory_fails_the_program_only(sandbox: Sandbox) -> None:
    done = sandbox.exec(["true"], cwd=PurePosixPath("/home/user/nowhere"), timeout_s=SOON_S)
    assert done.exit_code != 0


def test_a_program_past_its_deadline_is_killed_with_its_children(sandbox: Sandbox, place: PurePosixPath) -> None:
    script = f"sleep 300 & echo $! > ~/Desktop/{place.name}; echo before; wait"
    done = sandbox.exec(["bash", "-c", script], timeout_s=4)
    assert done.timed_out
    assert done.exit_code == -1
    assert done.stdout == "before\n"
    check = ["bash", "-c", f"kill -0 $(cat ~/Desktop/{place.name})"]
    gone = wait_until(lambda: sandbox.exec(check, timeout_s=SOON_S).exit_code != 0, Deadline.after(20))
    assert gone, "its child still runs"


def test_standard_input_is_empty(sandbox: Sandbox) -> None:
    assert sandbox.exec(["cat"], timeout_s=SOON_S).stdout == ""


def test_much_output_arrives_whole(sandbox: Sandbox) -> None:
    done = sandbox.exec(["bash", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; echo end >&2"], timeout_s=60)
    assert len(done.stdout) == 1_000_000
    assert done.stderr == "end\n"


def test_bytes_that_are_no_text_do_not_break_the_result(sandbox: Sandbox) -> None:
    done = sandbox.exec(["printf", r"a\377b"], timeout_s=SOON_S)
    assert done.exit_code == 0
    assert (done.stdout[0], done.stdout[-1]) == ("a", "b")


def test_as_root_is_root(sandbox: Sandbox) -> None:
    if sandbox.facts.provider == "fake":
        pytest.skip("the fake has no users: as_root gains nothing there")
    assert sandbox.exec(["id", "-u"], as_root=True, timeout_s=SOON_S).stdout == "0\n"
    assert sandbox.exec(["id", "-u"], timeout_s=SOON_S).stdout == "1000\n"


def test_programs_see_the_display(sandbox: Sandbox) -> None:
    if sandbox.facts.provider == "fake":
        pytest.skip("the fake has no display")
    assert sandbox.exec(["xdotool", "getdisplaygeometry"], timeout_s=SOON_S).stdout == (
        f"{sandbox.facts.width_px} {sandbox.facts.height_px}\n"
    )
