"""Guards the process that cleans up after a killed owner: by itself, within seconds, and only after a violent end."""

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from abandoned import Owner, is_running, owning

from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.live import sandboxes_dir
from deskfork.sandbox.reaper import Reaper

SOON_S = 15.0

pytestmark = [
    pytest.mark.usefixtures("no_docker"),
    # docker-py leaks its socket when nothing answers.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Owner]:
    """Another process, with a sandbox folder, a QEMU and a reaper."""
    with owning(tmp_path, with_reaper=True) as owner:
        yield owner


def ignores(pid: int, numbers: Sequence[int]) -> bool:
    (mask,) = (
        int(line.split()[1], 16)
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("SigIgn:")
    )
    return all(mask & 1 << number - 1 for number in numbers)


def is_cleaned_up(cache: Path, owner: Owner) -> bool:
    left = [pid for pid in (owner.qemu_pid, owner.reaper_pid) if is_running(pid)]
    return not left and list(sandboxes_dir(cache).iterdir()) == []


def test_an_owner_that_is_killed_leaves_nothing(tmp_path: Path, owner: Owner) -> None:
    owner.kill()
    assert wait_until(lambda: is_cleaned_up(tmp_path, owner), Deadline.after(SOON_S))


def test_signals_that_end_an_owners_whole_group_do_not_end_its_reaper(tmp_path: Path, owner: Owner) -> None:
    ending = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    assert wait_until(lambda: ignores(owner.reaper_pid, ending), Deadline.after(SOON_S))
    for number in ending:
        os.kill(owner.reaper_pid, number)
    owner.kill()
    assert wait_until(lambda: is_cleaned_up(tmp_path, owner), Deadline.after(SOON_S))


def test_an_owner_that_ends_without_a_word_is_cleaned_up_after(tmp_path: Path, owner: Owner) -> None:
    owner.end("")
    assert wait_until(lambda: is_cleaned_up(tmp_path, owner), Deadline.after(SOON_S))


def test_one_owners_end_does_not_touch_anothers_machine(tmp_path: Path, owner: Owner) -> None:
    with owning(tmp_path, with_reaper=True) as other:
        other.kill()
        assert wait_until(lambda: not is_running(other.reaper_pid), Deadline.after(SOON_S))
        assert not is_running(other.qemu_pid)
    assert is_running(owner.qemu_pid)
    assert [path.name for path in sandboxes_dir(tmp_path).iterdir()] == [owner.sandbox_id]


def test_a_reaper_that_is_dismissed_ends_and_removes_nothing(tmp_path: Path, owner: Owner) -> None:
    owner.end("dismiss\n")
    assert not is_running(owner.reaper_pid)
    assert is_running(owner.qemu_pid)


def test_dismissing_twice_or_a_dead_one_is_fine(tmp_path: Path) -> None:
    reaper = Reaper(tmp_path)
    reaper.dismiss()
    reaper.dismiss()
    killed = Reaper(tmp_path)
    os.kill(killed._child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, killed._child.pid, os.WEXITED | os.WNOWAIT)
    killed.dismiss()
