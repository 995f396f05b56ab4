"""Guards who owns a sandbox folder: a live one taken for abandoned is a trial killed, the reverse a machine leaked."""

import fcntl
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.core.errors import ConfigError
from deskfork.sandbox.live import (
    LOCK_NAME,
    RECORD_NAME,
    Address,
    Claim,
    SandboxRecord,
    claim,
    find_record,
    live_records,
    read_record,
    sandboxes_dir,
    take_abandoned,
)

OWNER = """
import sys
from pathlib import Path
from deskfork.sandbox.live import claim
print(claim(Path(sys.argv[1]), provider="qemu", kind="sandbox", template="desktop").record.id, flush=True)
sys.stdin.read()
"""


@contextmanager
def owner(cache: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Yield the id of a sandbox folder that another process owns, and that process."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(cache)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def make(cache: Path) -> Claim:
    return claim(cache, provider="qemu", kind="sandbox", template="desktop")


def live_ids(cache: Path) -> list[str]:
    return [record.id for record in live_records(cache)]


def folders(cache: Path) -> list[str]:
    return sorted(path.name for path in sandboxes_dir(cache).iterdir())


def test_a_claimed_folder_says_whose_it_is_and_is_nobody_elses_to_read(tmp_path: Path) -> None:
    own = make(tmp_path)
    record = read_record(own.directory)
    assert record is not None
    assert (record, record.owner_pid, record.template) == (own.record, os.getpid(), "desktop")
    modes = [path.stat().st_mode & 0o077 for path in (own.directory, own.directory.parent, *own.directory.iterdir())]
    assert set(modes) == {0}


def test_what_is_learnt_later_is_on_disk_too(tmp_path: Path) -> None:
    own = make(tmp_path)
    own.update(qemu_pid=7, endpoints={"ssh": Address(host="127.0.0.1", port=22)})
    assert read_record(own.directory) == own.record
    assert live_records(tmp_path) == [own.record]


def test_release_leaves_nothing_and_may_be_repeated(tmp_path: Path) -> None:
    own = make(tmp_path)
    (own.directory / "disk.qcow2").write_bytes(b"x")
    own.release()
    own.release()
    assert folders(tmp_path) == []
    assert live_records(tmp_path) == []


def test_a_folder_is_live_until_its_owner_is_killed_and_then_abandoned(tmp_path: Path) -> None:
    with owner(tmp_path) as (sandbox_id, process):
        assert live_ids(tmp_path) == [sandbox_id]
        assert list(take_abandoned(tmp_path)) == []
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        assert live_records(tmp_path) == []
        (taken,) = take_abandoned(tmp_path)
        assert (taken.record.id, taken.record.owner_pid) == (sandbox_id, process.pid)
        # Ours now: nobody else takes it as well.
        assert list(take_abandoned(tmp_path)) == []
        taken.release()
        assert folders(tmp_path) == []


def test_looking_does_not_take(tmp_path: Path) -> None:
    with owner(tmp_path) as (sandbox_id, process):
        process.kill()
        process.wait(20)
    assert live_records(tmp_path) == []
    assert [taken.record.id for taken in take_abandoned(tmp_path)] == [sandbox_id]


def test_who_looks_at_the_same_time_does_not_make_an_abandoned_folder_live(tmp_path: Path) -> None:
    with owner(tmp_path) as (sandbox_id, process):
        process.kill()
        process.wait(20)
    with (sandboxes_dir(tmp_path) / sandbox_id / LOCK_NAME).open() as lock:
        # As `live_records` does in another process.
        fcntl.flock(lock, fcntl.LOCK_SH)
        threading.Timer(0.01, fcntl.flock, (lock, fcntl.LOCK_UN)).start()
        assert [taken.record.id for taken in take_abandoned(tmp_path)] == [sandbox_id]


def test_what_was_taken_and_let_go_can_be_taken_again(tmp_path: Path) -> None:
    with owner(tmp_path) as (sandbox_id, process):
        process.kill()
        process.wait(20)
    for _ in range(2):
        (taken,) = take_abandoned(tmp_path)
        taken.let_go()
        taken.let_go()
    assert folders(tmp_path) == [sandbox_id]


def test_a_live_folder_is_never_taken_whatever_is_in_it(tmp_path: Path) -> None:
    own = make(tmp_path)
    (own.directory / RECORD_NAME).write_bytes(b"garbage")
    os.utime(own.directory, (0, 0))
    assert list(take_abandoned(tmp_path)) == []
    assert live_records(tmp_path) == []


def test_a_folder_without_record_or_lock_is_abandoned(tmp_path: Path) -> None:
    for name in ("00000000", "11111111"):
        (sandboxes_dir(tmp_path) / name).mkdir(parents=True)
    (sandboxes_dir(tmp_path) / "11111111" / RECORD_NAME).write_text("{}")
    (sandboxes_dir(tmp_path) / "a-file").touch()
    taken = list(take_abandoned(tmp_path))
    assert sorted(each.record.id for each in taken) == ["00000000", "11111111"]
    for each in taken:
        each.release()
    assert folders(tmp_path) == ["a-file"]


def test_a_folder_that_is_being_made_is_left_alone_until_it_is_old(tmp_path: Path) -> None:
    partial = sandboxes_dir(tmp_path) / ".deadbeef"
    partial.mkdir(parents=True)
    assert list(take_abandoned(tmp_path)) == []
    assert live_records(tmp_path) == []
    os.utime(partial, (0, 0))
    (taken,) = take_abandoned(tmp_path)
    assert taken.record.id == "deadbeef"
    taken.release()
    assert folders(tmp_path) == []


def test_an_old_folder_that_is_still_being_made_is_its_makers(tmp_path: Path) -> None:
    own = make(tmp_path)
    partial = own.directory.rename(own.directory.with_name(f".{own.record.id}"))
    os.utime(partial, (0, 0))
    assert list(take_abandoned(tmp_path)) == []


def test_without_a_folder_there_is_nothing(tmp_path: Path) -> None:
    assert live_records(tmp_path / "none") == []
    assert list(take_abandoned(tmp_path / "none")) == []


def test_a_claim_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    # Every file fails beyond ten bytes, as on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            make(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert folders(tmp_path) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before


def test_a_sandbox_is_found_by_an_unambiguous_beginning(tmp_path: Path) -> None:
    # Of seventeen ids at least two share their first hexadecimal digit.
    ids = sorted(make(tmp_path).record.id for _ in range(17))
    first, second = next(pair for pair in pairwise(ids) if pair[0][0] == pair[1][0])
    with pytest.raises(ConfigError, match=rf"ambiguous.*{second}"):
        find_record(tmp_path, first[0])
    for each in ids:
        length = next(n for n in range(1, 9) if sum(other.startswith(each[:n]) for other in ids) == 1)
        assert find_record(tmp_path, each[:length]).id == each


@pytest.mark.parametrize("asked", ["", "nothing", "../x", "\0"])
def test_an_unknown_sandbox_is_refused_with_those_that_run(tmp_path: Path, asked: str) -> None:
    with pytest.raises(ConfigError, match="none is running"):
        find_record(tmp_path, asked)
    own = make(tmp_path)
    with pytest.raises(ConfigError, match=own.record.id):
        find_record(tmp_path, asked)


@pytest.mark.parametrize("kind", ["template build", "checkpoint"])
def test_only_sandboxes_are_found(tmp_path: Path, kind: str) -> None:
    other = claim(tmp_path, provider="qemu", kind=kind)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="none is running"):
        find_record(tmp_path, other.record.id)


@given(st.binary(max_size=300))
def test_no_content_of_a_record_is_a_crash(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / RECORD_NAME).write_bytes(content)
        (Path(folder) / LOCK_NAME).touch()
        assert read_record(Path(folder)) is None or SandboxRecord.model_validate_json(content)
