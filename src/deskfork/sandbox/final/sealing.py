"""Ending a machine so that its disk holds what the guest has written."""

from pathlib import Path
from typing import Any, Literal

from deskfork.core.errors import InfraError, SandboxError, TransportError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.channels import Channels
from deskfork.sandbox.running import RunningMachine
from deskfork.transport.qmp import QmpClient

SYNC_TIMEOUT_S = 10.0
_KEY_HOLD_MS = 20
_TAKEN = b"Emergency Sync"
"""What the kernel prints when it takes SysRq-s; with kernel.sysrq off it prints nothing."""
_MAX_TAIL_BYTES = 1024 * 1024
_QUIET_S = 0.3
"""How long a disk has nothing to do before it counts as flushed."""


def flush(machine: RunningMachine, channels: Channels, deadline: Deadline) -> Literal["sync", "kernel", "nothing"]:
    """Have the guest write out what it holds in memory.

    A connection that is open is asked first. A guest whose sshd was killed, or never asked for anything, is told over
    its keyboard: what SysRq-s does is the kernel's own, and no program in the guest can be in its way. A guest that
    takes neither loses what it wrote last, as by a power cut: nothing that could help it.

    Raises:
        HostDiskFull: The disk cannot be written.
    """
    try:
        before = _requests(machine.qmp)
        has_synced = channels.user_ssh.is_connected and _sync_by_program(machine, channels, deadline)
        # Of a program that the agent may have replaced, what the disk was asked for is the proof.
        if has_synced and _requests(machine.qmp)["flush_operations"] > before["flush_operations"]:
            return "sync"
        return "kernel" if _sync_by_keyboard(machine, deadline) else "nothing"
    except (OSError, TransportError) as error:
        raise SandboxError(f"{machine.name}: could not be flushed: {machine.trouble() or error}") from error


def end(machine: RunningMachine, deadline: Deadline) -> None:
    """Stop the guest and let QEMU write its own tables out.

    Raises:
        SandboxError: QEMU is gone already, or did not end in time.
    """
    try:
        machine.qmp.stop()
    except TransportError as error:
        raise SandboxError(f"{machine.name}: could not be stopped: {machine.trouble() or error}") from error
    machine.quit(deadline)


def _sync_by_program(machine: RunningMachine, channels: Channels, deadline: Deadline) -> bool:
    try:
        done = channels.user_ssh.exec(["/bin/sync"], timeout_s=min(SYNC_TIMEOUT_S, deadline.remaining_s / 3))
    except InfraError:
        machine.trouble()
        return False
    return done.exit_code == 0


def _sync_by_keyboard(machine: RunningMachine, deadline: Deadline) -> bool:
    """Press SysRq-s and return whether the disk was flushed after that.

    The kernel has done it when it has said on its console that it took the order, the disk was asked to flush, which
    ends a sync even of a file system with nothing to write, and there was no further request for a while.
    """
    qmp, console = machine.qmp, machine.files.console_log
    before, said_before = _requests(qmp), console.stat().st_size
    keys = [{"type": "qcode", "data": name} for name in ("alt", "sysrq", "s")]
    qmp.execute("send-key", {"keys": keys, "hold-time": _KEY_HOLD_MS})
    last = before
    quiet_since = Deadline.after(_QUIET_S)

    def is_flushed() -> bool:
        nonlocal last, quiet_since
        now = _requests(qmp)
        if now != last:
            last, quiet_since = now, Deadline.after(_QUIET_S)
        is_quiet = now["flush_operations"] > before["flush_operations"] and quiet_since.has_passed
        return is_quiet and _TAKEN in _tail(console, said_before)

    patience = Deadline.after(min(SYNC_TIMEOUT_S, deadline.remaining_s / 2))
    return bool(wait_until(is_flushed, patience, interval_s=0.02))


def _tail(path: Path, start: int) -> bytes:
    with path.open("rb") as stream:
        stream.seek(start)
        return stream.read(_MAX_TAIL_BYTES)


def _requests(qmp: QmpClient) -> dict[str, int]:
    """Return how many requests the guest's disk has had, by kind."""
    devices: list[dict[str, Any]] = qmp.execute("query-blockstats")
    names = ("flush_operations", "wr_operations", "unmap_operations")
    return {name: sum(int(device["stats"][name]) for device in devices) for name in names}
