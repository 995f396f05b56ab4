"""Whether a run goes on: its directory is locked by the process that works on it, for as long as that lives."""

import fcntl
import os

from deskfork.records.paths import RunPaths


def owned_since(run: RunPaths) -> float | None:
    """Return since when a process works on the run, seconds since the epoch; None if none does."""
    try:
        descriptor = os.open(run.owner, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        # The owner wrote its process id into it when it began.
        return os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)
    return None
