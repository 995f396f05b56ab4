"""Who works on a run directory: a lock that the kernel drops when the process ends, however it ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from deskfork.core.errors import ConfigError, InfraError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.records.paths import RunPaths


@contextmanager
def claimed(run: RunPaths) -> Iterator[None]:
    """Keep other processes from working on a run within the `with` block.

    Raises:
        ConfigError: Another process works on it.
        InfraError: The lock's file cannot be written.
    """
    try:
        descriptor = os.open(run.owner, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InfraError(f"{run.owner}: could not be opened: {error.strerror or error}") from error
    try:
        # Whoever only looks whether the run goes on holds a lock as well, for an instant.
        if not wait_until(partial(_try_lock, descriptor), Deadline.after(1.0)):
            pid = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            raise ConfigError(f"{run.root}: process {pid} works on this run: wait until it has ended, or end it")
        try:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        except OSError as error:
            raise InfraError(f"{run.owner}: could not be written: {error.strerror or error}") from error
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
