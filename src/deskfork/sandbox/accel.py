"""Whether guests run under KVM here: believed only when one did.

/dev/kvm can exist, open, and even create a machine, and still hang or abort every guest, on nested hosts for one.
"""

import hashlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from deskfork.core.atomic import write_atomic
from deskfork.core.config import StrictModel
from deskfork.core.errors import SandboxError
from deskfork.sandbox.boot_sector import EXIT_CODE, boot_sector

KVM_DEVICE = Path("/dev/kvm")
PROBE_TIMEOUT_S = 8.0
_GRACE_S = 20.0
_CPU = {"kvm": "host", "tcg": "max"}


class Acceleration(StrictModel):
    """What guests run under, and why."""

    kind: Literal["kvm", "tcg"]
    reason: str
    """One sentence for the user."""


def probe_dir(cache_dir: Path) -> Path:
    """Return the folder of the probe's guest and its cached verdicts; QEMU in a container must be able to read it."""
    return cache_dir / "acceleration"


def probe_acceleration(
    qemu_command: Sequence[str],
    cache_dir: Path,
    *,
    qemu_version: str,
    device: Path = KVM_DEVICE,
    timeout_s: float = PROBE_TIMEOUT_S,
) -> Acceleration:
    """Return KVM if a guest of ours ran to its end under it, else TCG.

    The verdict of a guest that was tried is kept until the machine boots again, or QEMU or the device changes.

    Args:
        qemu_command: QEMU, or what starts it in a container; must end with its process group, or soon after by itself.
        cache_dir: deskfork's cache; `probe_dir(cache_dir)` must lie at the same path for QEMU.
        qemu_version: QEMU's version, part of what the kept verdict depends on.
        device: The device to look at.
        timeout_s: How long the guest may take, seconds; it needs a tenth of one.

    Raises:
        SandboxError: The probe's files could not be written.
    """
    if refusal := _refusal(device):
        return Acceleration(kind="tcg", reason=refusal)
    folder = probe_dir(cache_dir)
    verdict = folder / f"{_circumstances(qemu_command, qemu_version, device)}.json"
    try:
        return Acceleration.model_validate_json(verdict.read_bytes())
    except (FileNotFoundError, ValidationError):
        # Never tried under these circumstances, or the note was damaged: try.
        failure = try_guest(qemu_command, folder, "kvm", timeout_s=timeout_s)
    if failure is None:
        found = Acceleration(kind="kvm", reason=f"a test guest ran under KVM ({device})")
    else:
        found = Acceleration(kind="tcg", reason=f"{device} opens, but a test guest did not run under KVM: {failure}")
    write_atomic(verdict, found.model_dump_json())
    return found


def try_guest(
    qemu_command: Sequence[str],
    folder: Path,
    kind: Literal["kvm", "tcg"],
    *,
    cpu: str | None = None,
    timeout_s: float = PROBE_TIMEOUT_S,
) -> str | None:
    """Run the boot sector under `kind` and return None if it came to its end, else what happened instead.

    Args:
        qemu_command: QEMU, or what starts it.
        folder: Where the boot sector is written.
        kind: The accelerator.
        cpu: QEMU's CPU model; by default the one that sandboxes get.
        timeout_s: How long the guest may take, seconds.

    Raises:
        SandboxError: The boot sector could not be written.
    """
    disk = folder / "probe.img"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # SeaBIOS reads whole tracks of a floppy.
        write_atomic(disk, boot_sector().ljust(64 * 1024, b"\0"))
    except OSError as exc:
        raise SandboxError(f"the acceleration probe could not be written to {folder}: {exc}") from exc
    machine = ["-machine", "pc", "-m", "32", "-nodefaults", "-display", "none", "-no-reboot"]
    devices = ["-drive", f"file={disk},format=raw,if=floppy,readonly=on"]
    devices += ["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]
    return _outcome([*qemu_command, "-accel", kind, "-cpu", cpu or _CPU[kind], *machine, *devices], timeout_s)


def _outcome(command: list[str], timeout_s: float) -> str | None:
    with tempfile.TemporaryFile() as output:
        try:
            qemu = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        except OSError as exc:
            return f"{command[0]} could not be started: {exc.strerror}"
        try:
            code = qemu.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return f"it hung, and was killed after {timeout_s:.0f} s"
        finally:
            if qemu.returncode is None:
                os.killpg(qemu.pid, signal.SIGKILL)
                qemu.wait(_GRACE_S)
        if code == EXIT_CODE:
            return None
        output.seek(0)
        said = output.read(64 * 1024).decode(errors="replace").strip().splitlines()
        ended = f"QEMU was ended by signal {-code}" if code < 0 else f"QEMU ended with code {code}"
        return f"{ended}{f' ({said[-1][:300]})' if said else ''}"


def _refusal(device: Path) -> str | None:
    """Return why the device cannot be used at all."""
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        return f"this machine has no {device}"
    except PermissionError:
        return f"{device} may not be opened by this user (`sudo adduser $USER kvm`, then log in again)"
    except OSError as exc:
        return f"{device} cannot be opened: {exc.strerror}"
    return None


def _circumstances(qemu_command: Sequence[str], qemu_version: str, device: Path) -> str:
    """Return a name for all that a verdict depends on."""
    found = device.stat()
    identity = [found.st_rdev, found.st_ino, found.st_mode, found.st_uid, found.st_gid, os.geteuid()]
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    facts = json.dumps([boot_id, qemu_version, *identity, *qemu_command, boot_sector().hex()])
    return hashlib.sha256(facts.encode()).hexdigest()[:24]
