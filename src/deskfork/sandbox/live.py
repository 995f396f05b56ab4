"""Sandboxes as they lie on disk: one folder each, locked by its owner while that lives.

The kernel drops a lock when its process dies, however it dies, so a folder whose lock can be had belongs to nobody:
that is all that cleaning up needs to know, and no process id can be mistaken for another's.
"""

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from deskfork.core.atomic import write_atomic
from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError
from deskfork.core.waiting import Deadline, wait_until

RECORD_NAME = "sandbox.json"
LOCK_NAME = "lock"


class Address(StrictModel):
    """Where a guest service is reached."""

    host: str
    port: int = Field(ge=1, le=65535)


class SandboxRecord(StrictModel):
    """What is known of a live sandbox to other processes."""

    id: str
    kind: Literal["sandbox", "template build", "checkpoint"] = "sandbox"
    provider: str
    template: str = ""
    qemu_pid: int = 0
    owner_pid: int
    created_at: datetime
    endpoints: dict[str, Address] = Field(default_factory=dict)
    private_key: Path | None = None
    ssh_host_key: str = ""
    network: bool = False
    is_held: bool = False
    """Started by `sandbox start`: its owner does nothing but hold it."""


@dataclass
class Claim:
    """A sandbox folder that this process owns."""

    directory: Path
    record: SandboxRecord
    lock_fd: int

    def update(self, **changes: object) -> None:
        """Change fields of the record, on disk too."""
        self.record = self.record.model_copy(update=changes)
        _write_record(self.directory, self.record)

    def release(self) -> None:
        """Remove the folder and everything in it; calling it again does nothing."""
        if self.lock_fd >= 0:
            shutil.rmtree(self.directory, ignore_errors=True)
            self.let_go()

    def let_go(self) -> None:
        """Leave the folder as it is to whoever takes it next; calling it again does nothing."""
        if self.lock_fd >= 0:
            os.close(self.lock_fd)
            self.lock_fd = -1


def sandboxes_dir(cache_dir: Path) -> Path:
    """Return where the folders of live sandboxes lie."""
    return cache_dir / "sandboxes"


def claim(
    cache_dir: Path,
    *,
    provider: str,
    kind: Literal["sandbox", "template build", "checkpoint"],
    template: str = "",
    network: bool = False,
    is_held: bool = False,
) -> Claim:
    """Make a sandbox folder owned by this process.

    Raises:
        OSError: The folder cannot be made.
    """
    root = sandboxes_dir(cache_dir)
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    sandbox_id = secrets.token_hex(4)
    record = SandboxRecord(
        id=sandbox_id,
        kind=kind,
        provider=provider,
        template=template,
        owner_pid=os.getpid(),
        created_at=datetime.now(UTC),
        network=network,
        is_held=is_held,
    )
    # Locked before it has its name, so that nobody can take a folder that is just being made for an abandoned one.
    unnamed = root / f".{sandbox_id}"
    unnamed.mkdir(mode=0o700)
    own = Claim(unnamed, record, -1)
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, unnamed, ignore_errors=True)
        own.lock_fd = os.open(unnamed / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        undo.callback(own.let_go)
        fcntl.flock(own.lock_fd, fcntl.LOCK_EX)
        _write_record(unnamed, record)
        own.directory = unnamed.rename(root / sandbox_id)
        undo.pop_all()
    return own


def live_records(cache_dir: Path) -> list[SandboxRecord]:
    """Return the records of all sandboxes whose owner lives, oldest first."""
    found = [
        record
        for directory in _folders(cache_dir)
        if (record := read_record(directory)) and not _is_abandoned(directory)
    ]
    return sorted(found, key=lambda record: record.created_at)


def find_record(cache_dir: Path, id_or_prefix: str) -> SandboxRecord:
    """Return the live sandbox of that id.

    Raises:
        ConfigError: There is none, or several ids begin so.
    """
    records = [record for record in live_records(cache_dir) if record.kind == "sandbox"]
    matches = [record for record in records if id_or_prefix and record.id.startswith(id_or_prefix)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ConfigError(f"sandbox {id_or_prefix!r} is ambiguous: {', '.join(record.id for record in matches)}")
    known = ", ".join(record.id for record in records) or "none is running; `deskfork sandbox start` starts one"
    raise ConfigError(f"no sandbox {id_or_prefix!r} (running: {known})")


def take_abandoned(cache_dir: Path) -> Iterator[Claim]:
    """Yield every sandbox folder whose owner is dead, now owned by this process."""
    for directory in _folders(cache_dir, with_partial=True):
        with suppress(OSError):
            lock_fd = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            # Whoever lists sandboxes holds a lock as well, for an instant; an owner's is there the second time, too.
            if not wait_until(partial(_try_lock, lock_fd), Deadline.after(0.05), interval_s=0.01):
                os.close(lock_fd)
                continue
            record = read_record(directory) or SandboxRecord(
                id=directory.name.lstrip("."), provider="", owner_pid=0, created_at=datetime.now(UTC)
            )
            yield Claim(directory, record, lock_fd)


def read_record(directory: Path) -> SandboxRecord | None:
    """Return the record in a sandbox folder, or None when it cannot be read as one."""
    try:
        return SandboxRecord.model_validate_json((directory / RECORD_NAME).read_bytes())
    except (OSError, ValidationError):
        return None


def _write_record(directory: Path, record: SandboxRecord) -> None:
    write_atomic(directory / RECORD_NAME, record.model_dump_json(indent=1), mode=0o600)


def _folders(cache_dir: Path, *, with_partial: bool = False) -> list[Path]:
    root = sandboxes_dir(cache_dir)
    if not root.is_dir():
        return []
    folders = [path for path in root.iterdir() if path.is_dir()]
    return [path for path in folders if not path.name.startswith(".") or (with_partial and _is_stale(path))]


def _is_stale(unnamed: Path) -> bool:
    # A folder that is being made is without its lock for an instant; one that is a minute old was left by a crash.
    with suppress(OSError):
        return time.time() - unnamed.stat().st_mtime > 60
    return False


def _try_lock(lock_fd: int) -> bool:
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_abandoned(directory: Path) -> bool:
    try:
        lock_fd = os.open(directory / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock_fd)
    return True
