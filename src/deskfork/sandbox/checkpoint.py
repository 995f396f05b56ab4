"""Freezing a running fork.

A fork's memory is a private view of its template's file, so unlike a template's it has to be written: a second QEMU
with a memory file of its own takes the machine over by an ordinary migration on this host, and is frozen as a template
is.
"""

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from deskfork.core.errors import SandboxError, TransportError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.frozen import Frozen, copy_sparse, describe_files, remove_folder
from deskfork.sandbox.launcher import Launcher
from deskfork.sandbox.live import Claim, claim
from deskfork.sandbox.machine import MachineFiles, Start
from deskfork.sandbox.running import RunningMachine, create_overlay


def take_checkpoint(
    machine: RunningMachine,
    parent: Frozen,
    launcher: Launcher,
    *,
    token: str,
    claim_name: str,
    cache_dir: Path,
    deadline: Deadline,
) -> Frozen:
    """Freeze `machine` as it is now and let it go on.

    Args:
        machine: The running fork.
        parent: What it was forked from.
        launcher: Starts the QEMU that takes the memory over.
        token: What the guest's services want at this instant.
        claim_name: The sandbox's id, for messages.
        cache_dir: deskfork's cache.
        deadline: When to give up.

    Returns:
        The frozen machine; it removes itself when the last user has released it.

    Raises:
        SandboxError: It could not be frozen; the machine goes on if it still can.
    """
    with ExitStack() as undo:
        try:
            own = claim(cache_dir, provider=launcher.name, kind="checkpoint", template=parent.manifest.name)
        except OSError as error:
            raise SandboxError(f"{claim_name}: no folder for a checkpoint: {error}") from error
        undo.callback(own.release)
        parent.retain()
        undo.callback(parent.release)
        try:
            try:
                _take_over(machine, parent, launcher, own, deadline)
                copy_sparse(machine.files.disk, own.directory / "disk.qcow2")
            finally:
                machine.qmp.cont()
            create_overlay(own.directory / "overlay.qcow2", own.directory / "disk.qcow2", "qcow2")
            files = describe_files(own.directory, hashed=("state",))
        except (OSError, TransportError) as error:
            raise SandboxError(f"{claim_name}: its state could not be written to {own.directory}: {error}") from error
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
        }
    )
    return Frozen(own.directory, manifest, private_key=parent.private_key, parent=parent, on_unused=remove)


def _take_over(machine: RunningMachine, parent: Frozen, launcher: Launcher, own: Claim, deadline: Deadline) -> None:
    # Inside the running machine's own folder, because a container sees no other: that is where the two must meet.
    meeting = machine.files.directory / own.record.id
    meeting.mkdir(mode=0o700)
    files = MachineFiles(
        directory=meeting,
        kernel=machine.files.kernel,
        initrd=machine.files.initrd,
        # Device state holds no disk contents, and this QEMU never runs the guest: an empty disk of that size will do.
        disk=meeting / "unused.qcow2",
        memory=meeting / "memory",
        token=meeting / "seed-token",
        authorized_key=meeting / "seed-key",
    )
    try:
        create_overlay(files.disk, parent.disk, "qcow2")
        files.token.write_text("-")
        files.authorized_key.write_text("-")
        socket = meeting / "take.sock"
        taker = RunningMachine.start(
            own.record.id,
            launcher,
            parent.manifest.machine,
            files,
            Start(incoming=f"unix:{socket}"),
            readable=parent.lineage(),
            deadline=deadline,
        )
        try:
            machine.send_to(socket, deadline)
            taker.freeze_devices(meeting / "state", deadline)
            taker.quit(deadline)
        finally:
            taker.close()
        for name in ("memory", "state"):
            (meeting / name).rename(own.directory / name)
    finally:
        remove_folder(meeting)
