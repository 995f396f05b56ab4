"""What qcow2 disks read from: in the cache by relative names, so that it may be moved; in a sandbox by absolute ones.

A sandbox's disk may be kept elsewhere when its sandbox has ended, and then still finds the template it lies over.
"""

import shutil
import struct
import subprocess
from pathlib import Path

from deskfork.core.errors import SandboxError
from deskfork.sandbox.frozen.frozen import Frozen

# Source: QEMU, docs/interop/qcow2.txt: magic, version, offset and length of the backing file's name; big-endian.
_QCOW2 = struct.Struct(">4sIQI")
_MAGIC = b"QFI\xfb"
_HEADER_BYTES = 1 << 16
"""The header's cluster, of the size that qemu-img makes; the name is in it."""


def copy_empty_overlay(frozen: Frozen, target: Path) -> None:
    """Make the disk of a fork.

    Raises:
        OSError: No space is left.
        SandboxError: The cache was moved, and the disk could not be told so.
    """
    shutil.copyfile(frozen.empty_overlay, target)
    if backing_name(target) != str(frozen.disk):
        target.chmod(0o600)
        set_backing(target, str(frozen.disk), "qcow2")


def backing_name(disk: Path) -> str:
    """Return the name of what a qcow2 disk reads from, as it is written in it; empty when it is none that can be read.

    Raises:
        OSError: It cannot be opened.
    """
    with disk.open("rb") as stream:
        head = stream.read(_QCOW2.size)
        if len(head) < _QCOW2.size:
            return ""
        magic, _, offset, length = _QCOW2.unpack(head)
        if magic != _MAGIC or offset + length > _HEADER_BYTES:
            return ""
        stream.seek(offset)
        return stream.read(length).decode(errors="replace")


def name_from(folder: Path, disk: Path) -> str:
    """Return by which name a disk in `folder` names another in the same cache.

    Both lie in a folder of their own below one of the cache's. Where one of those leads elsewhere by a link, there is
    no relative name that holds, and it is the absolute one.
    """
    kind, other = folder.parent, disk.parent.parent
    if kind.resolve().parent != other.resolve().parent:
        return str(disk)
    return str(Path("..", "..", other.name, disk.parent.name, disk.name))


def set_backing(disk: Path, name: str, disk_format: str) -> None:
    """Write into a qcow2 disk what it reads from; what it reads is taken to be the same.

    Raises:
        SandboxError: qemu-img failed, or is not installed.
    """
    command = ["qemu-img", "rebase", "-u", "-f", "qcow2", "-b", name, "-F", disk_format, str(disk)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"qemu-img could not change {disk}: {error} (Debian package: qemu-utils)") from error
    if done.returncode:
        raise SandboxError(f"qemu-img could not change {disk}: {done.stderr.strip()}")
