"""Bringing a fork of a frozen machine to the point where its guest is its own."""

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from deskfork.core.errors import SandboxError, TransportError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.channels import Channels
from deskfork.sandbox.frozen.frozen import Frozen
from deskfork.sandbox.frozen.overlays import copy_empty_overlay
from deskfork.sandbox.launcher import Launcher
from deskfork.sandbox.live import Address, Claim
from deskfork.sandbox.machine import MachineFiles, Start
from deskfork.sandbox.running import RunningMachine, fork_files

FORK_TIMEOUT_S = 60.0
SPACE_MIB = 64
"""What a fork wants to find free for what it is going to write; QEMU stops a guest whose disk cannot be written."""


def fork_machine(
    claim: Claim,
    launcher: Launcher,
    frozen: Frozen,
    *,
    readable: Sequence[Path] = (),
    on_running: Callable[[RunningMachine, Channels], object] | None = None,
) -> tuple[RunningMachine, Channels]:
    """Start a machine that goes on from `frozen`, and give its guest an identity of its own.

    Args:
        claim: The sandbox's folder, where the machine's files are made.
        launcher: Starts QEMU.
        frozen: What to go on from.
        readable: Further folders that QEMU has to see.
        on_running: Called as soon as the guest's processors run, before its services are given their own tokens.

    Raises:
        SandboxError: The fork did not come up; nothing of it runs.
    """
    deadline = Deadline.after(FORK_TIMEOUT_S)
    manifest, name = frozen.manifest, claim.record.id
    files = fork_files(claim.directory, frozen)
    _write_files(files, frozen)
    start = Start(
        incoming=f"file:{frozen.state}",
        is_mapped_ram=frozen.is_mapped_ram,
        network=claim.record.network,
        forwards=launcher.forwards(),
    )
    with ExitStack() as undo:
        machine = RunningMachine.start(
            name,
            launcher,
            manifest.machine,
            files,
            start,
            readable=[*frozen.lineage(), *readable],
            deadline=deadline,
        )
        undo.callback(machine.close)
        channels = Channels.to(
            machine.endpoints,
            name=name,
            token=manifest.token,
            private_key=frozen.private_key,
            ssh_host_key=manifest.ssh_host_key,
        )
        undo.callback(channels.close)
        if on_running is not None:
            on_running(machine, channels)
        try:
            channels.adopt(name, machine.endpoints["kernel"], manifest.kernel_id, deadline)
        except TransportError as error:
            trouble = machine.trouble()
            raise SandboxError(
                f"{name}: the fork did not answer: {error}{f' ({trouble})' if trouble else ''}"
            ) from error
        _record(claim, machine, frozen)
        undo.pop_all()
    return machine, channels


def _write_files(files: MachineFiles, frozen: Frozen) -> None:
    try:
        status = os.statvfs(files.directory)
        if status.f_bavail * status.f_frsize < SPACE_MIB << 20:
            raise OSError(errno.ENOSPC, f"less than {SPACE_MIB} MiB are free; free some, or set DESKFORK_CACHE")
        for stale in (files.qmp_socket, files.vnc_socket):
            stale.unlink(missing_ok=True)
        files.disk.unlink(missing_ok=True)
        copy_empty_overlay(frozen, files.disk)
        files.token.write_text("-")
        files.authorized_key.write_text("-")
    except OSError as error:
        raise SandboxError(f"{files.directory.name}: its files could not be written: {error}") from error


def _record(claim: Claim, machine: RunningMachine, frozen: Frozen) -> None:
    try:
        claim.update(
            qemu_pid=machine.process.pid,
            endpoints={key: Address(host=at.host, port=at.port) for key, at in machine.endpoints.items()},
            private_key=frozen.private_key,
            ssh_host_key=frozen.manifest.ssh_host_key,
        )
    except OSError as error:
        raise SandboxError(f"{machine.name}: its record could not be written: {error}") from error
