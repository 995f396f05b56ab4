"""Freezing a running fork.

A fork's memory is a private view of its template's file, so unlike a template's it has to be written. QEMU's
`mapped-ram` format puts every page at its own place in the file, and leaves pages of zeros out as holes: a fork of the
checkpoint maps that file as it maps a template's, and reads only the devices out of it.
"""

import struct
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from deskfork.core.errors import SandboxError, TransportError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.frozen import Frozen, copy_sparse, describe_files
from deskfork.sandbox.live import claim
from deskfork.sandbox.running import RunningMachine, create_overlay

_RAM_NAME = b"pc.ram"
# Source: QEMU 10.0, docs/devel/migration/mapped-ram.rst and struct MappedRamHeader: after a block's name and size come
# version, page size, offset of the bitmap of pages that are there, offset of the pages; all big-endian.
_HEADER = struct.Struct(">IQQQ")
_PAGE = 4096
_HEAD_BYTES = 1 << 20


def take_checkpoint(
    machine: RunningMachine, parent: Frozen, *, provider: str, token: str, cache_dir: Path, deadline: Deadline
) -> Frozen:
    """Freeze `machine` as it is now and let it go on.

    Args:
        machine: The running fork.
        parent: What it was forked from.
        provider: Whose machine it is.
        token: What the guest's services want at this instant.
        cache_dir: deskfork's cache.
        deadline: When to give up.

    Returns:
        The frozen machine; it removes itself when the last user has released it.

    Raises:
        SandboxError: It could not be frozen; the machine goes on if it still can.
    """
    with ExitStack() as undo:
        try:
            own = claim(cache_dir, provider=provider, kind="checkpoint", template=parent.manifest.name)
        except OSError as error:
            raise SandboxError(f"{machine.name}: no folder for a checkpoint: {error}") from error
        undo.callback(own.release)
        parent.retain()
        undo.callback(parent.release)
        # Written in the machine's own folder, because QEMU in a container sees no other.
        written = machine.files.directory / f"memory-{own.record.id}"
        undo.callback(written.unlink, missing_ok=True)
        disk = own.directory / "disk.qcow2"
        try:
            try:
                machine.write_all(written, deadline)
                copy_sparse(machine.files.disk, disk)
            finally:
                machine.qmp.cont()
            memory = written.rename(own.directory / "memory")
            offset = _leave_pages_to_the_mapping(memory, parent.manifest.machine.memory_mib << 20)
            create_overlay(own.directory / "overlay.qcow2", disk, "qcow2")
            files = describe_files(own.directory, ("memory", "disk.qcow2", "overlay.qcow2"), hashed=())
        except (OSError, TransportError) as error:
            raise SandboxError(f"{machine.name}: its state could not be written to {own.directory}: {error}") from error
        undo.pop_all()

    def remove() -> None:
        own.release()
        parent.release()

    manifest = parent.manifest.model_copy(
        update={
            "digest": f"{parent.manifest.digest}+{own.record.id}",
            "token": token,
            "created_at": datetime.now(UTC),
            "build_s": {},
            "files": files,
            "memory_offset": offset,
        }
    )
    return Frozen(own.directory, manifest, private_key=parent.private_key, parent=parent, on_unused=remove)


def _leave_pages_to_the_mapping(path: Path, memory_bytes: int) -> int:
    """Strike guest memory's pages out of the list of what is to be read, and return where they begin.

    Raises:
        SandboxError: The file is not laid out as this version of QEMU lays it out.
    """
    with path.open("r+b") as stream:
        head = stream.read(_HEAD_BYTES)
        entry = bytes([len(_RAM_NAME)]) + _RAM_NAME + struct.pack(">Q", memory_bytes)
        at = head.find(entry)
        if at < 0 or at + len(entry) + _HEADER.size > len(head):
            raise SandboxError(f"{path}: QEMU's mapped-ram file names no block of {memory_bytes} bytes of memory")
        version, page, bitmap, pages = _HEADER.unpack_from(head, at + len(entry))
        bitmap_bytes = memory_bytes // _PAGE // 8
        # Header, bitmap and pages follow one another in a file that holds them all.
        places = (at + len(entry) + _HEADER.size, bitmap, bitmap + bitmap_bytes, pages, pages + memory_bytes)
        is_sound = version == 1 and page == _PAGE and pages % _PAGE == 0
        if not is_sound or list(places) != sorted(places) or places[-1] > stream.seek(0, 2):
            raise SandboxError(f"{path}: QEMU's mapped-ram header {version, page, bitmap, pages} is not understood")
        stream.seek(bitmap)
        stream.write(bytes(bitmap_bytes))
    return int(pages)
