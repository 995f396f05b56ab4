"""Who uses a template: a lock on its folder that the kernel drops when the user's process ends, however it ends."""

import fcntl
import os
import secrets
from contextlib import suppress
from functools import partial
from pathlib import Path

from deskfork.core.errors import SandboxError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.frozen.files import remove_folder

RETIRED_SUFFIX = ".old"
"""Ends the name of a folder that is just being removed."""


def use(directory: Path) -> int:
    """Keep a template from being removed or replaced for as long as the returned file descriptor is open.

    Its folder's time of last change says from now on when it was last used.

    Raises:
        SandboxError: It is gone, or just being removed.
    """
    try:
        used = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise SandboxError(f"template in {directory}: it is not there any more ({error.strerror})") from error
    # Whoever only looks whether it is used holds a lock as well, for an instant.
    if not wait_until(partial(_try_lock, used, fcntl.LOCK_SH), Deadline.after(1.0)) or not _is_at(directory, used):
        os.close(used)
        raise SandboxError(f"template in {directory}: it was removed or replaced just now; try again")
    with suppress(PermissionError):
        os.utime(used)
    return used


def is_used(directory: Path) -> bool:
    """Whether a live sandbox, or a template over it that one uses, reads from a template."""
    try:
        looked = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(looked, fcntl.LOCK_EX)
    finally:
        os.close(looked)


def retire(directory: Path) -> bool:
    """Remove a template's folder, unless somebody uses it; return whether it is gone."""
    try:
        own = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        if not _try_lock(own, fcntl.LOCK_EX):
            return False
        # Nobody finds half of it, should we be killed on the way.
        retired = directory.rename(directory.parent / f".{directory.name}.{secrets.token_hex(4)}{RETIRED_SUFFIX}")
    finally:
        os.close(own)
    remove_folder(retired)
    return True


def _try_lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(directory: Path, opened: int) -> bool:
    try:
        return os.path.samestat(os.fstat(opened), directory.stat())
    except FileNotFoundError:
        return False
