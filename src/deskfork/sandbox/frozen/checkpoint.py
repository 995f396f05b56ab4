"""Freezing a running fork.

A fork's memory is a private view of its template's file, so unlike a template's it has to be written. QEMU's
`mapped-ram` format puts every page at its own place in the file, and leaves pages of zeros out as holes: a fork of the
checkpoint maps that file as it maps a template's, and reads only the devices out of it.
"""

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from deskfork.core.errors import SandboxError, TransportError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.frozen.files import copy_sparse, describe_files
from deskfork.sandbox.frozen.frozen import Frozen
from deskfork.sandbox.frozen.mapped_ram import keep_out_of_bitmap
from deskfork.sandbox.live import claim
from deskfork.sandbox.running import RunningMachine, create_overlay


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
            offset = keep_out_of_bitmap(memory, parent.manifest.machine.memory_mib << 20)
            create_overlay(own.directory / "overlay.qcow2", disk, "qcow2")
            files = describe_files(own.directory, ("memory", "disk.qcow2", "overlay.qcow2"), hashed=())
        except (OSError, TransportError) as error:
            raise SandboxError(f"{machine.name}: its state could not be written to {own.directory}: {error}") from error
        undo.pop_all()

    manifest = parent.manifest.model_copy(
        update={
            "digest": f"{parent.manifest.digest}+{own.record.id}",
            "token": token,
            "created_at": datetime.now(UTC),
            "build_s": {},
            "files": files,
            "memory_form": "full",
            "memory_offset": offset,
        }
    )
    return Frozen(own.directory, manifest, private_key=parent.private_key, parent=parent, on_unused=own.release)
