"""Booting a guest to the state of a template: boot, open, warm up."""

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from deskfork.core.errors import BootTimeout, SandboxError, TransportError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.channels import Channels
from deskfork.sandbox.frozen.manifest import FrozenManifest
from deskfork.sandbox.images.image import GuestImage
from deskfork.sandbox.launcher import Launcher
from deskfork.sandbox.live import Claim
from deskfork.sandbox.machine import MachineFiles, Start
from deskfork.sandbox.running import RunningMachine, create_overlay, settle
from deskfork.sandbox.templates.template import OPEN_TIMEOUT_S, Recipe, machine_spec
from deskfork.transport.endpoint import TcpEndpoint
from deskfork.transport.observer import GuestHealth

BOOT_TIMEOUT_S = 400.0


class TemplateBoot:
    """One template being made."""

    def __init__(
        self, recipe: Recipe, image: GuestImage, launcher: Launcher, own: Claim, on_progress: Callable[[str], None]
    ) -> None:
        """Remember what to make, and the claimed folder to make it in; nothing is started yet."""
        self._recipe = recipe
        self._image = image
        self._launcher = launcher
        self._own = own
        self._on_progress = on_progress
        self._spec = machine_spec(launcher)
        self._token = secrets.token_hex(16)
        self._seconds: dict[str, float] = {}
        self._started = time.monotonic()

    def freeze(self) -> FrozenManifest:
        """Boot, open, settle, and leave memory, state, disk and key in the claimed folder.

        Returns:
            The manifest, still without digest and files.

        Raises:
            BootTimeout: The guest's services did not all answer.
            SandboxError: QEMU or the guest failed on the way.
        """
        with self._booted() as (machine, health, channels):
            try:
                self._open(channels)
                kernel_id = self._warm_up(channels, machine.endpoints["kernel"])
            finally:
                channels.close()
            self._on_progress("waiting until the guest is idle")
            settle(machine.process.pid, Deadline.after(60.0))
            self._lap("settle")
            self._on_progress("freezing")
            machine.freeze_devices(self._own.directory / "state", Deadline.after(60.0))
            machine.quit(Deadline.after(60.0))
            self._lap("freeze")
        return FrozenManifest(
            name=self._recipe.name,
            digest="",
            image_digest=self._image.digest,
            image_directory=self._image.directory,
            qemu_version=self._launcher.qemu_version(),
            machine=self._spec,
            opened=self._recipe.opened,
            token=self._token,
            kernel_id=kernel_id,
            ssh_host_key=health.ssh_host_key,
            created_at=datetime.now(UTC),
            build_s=self._seconds,
            files={},
        )

    def time_cold_boot(self) -> float:
        """Boot and open, freeze nothing; return the seconds until a cell had answered.

        Raises:
            BootTimeout: The guest's services did not all answer.
            SandboxError: QEMU or the guest failed on the way.
        """
        started = time.monotonic()
        with self._booted() as (_, _, channels):
            try:
                self._open(channels)
                channels.kernel.connect(None, deadline=Deadline.after(60.0))
                channels.kernel.run_cell("print(1)", timeout_s=60.0)
                return time.monotonic() - started
            finally:
                channels.close()

    @contextmanager
    def _booted(self) -> Iterator[tuple[RunningMachine, GuestHealth, Channels]]:
        files = self._seed()
        self._on_progress(f"booting under {self._spec.acceleration}")
        machine = RunningMachine.start(
            self._own.record.id,
            self._launcher,
            self._spec,
            files,
            Start(forwards=self._launcher.forwards()),
            readable=[self._image.directory],
            deadline=Deadline.after(30.0),
        )
        try:
            health, channels = self._boot(machine, files)
            yield machine, health, channels
        finally:
            machine.close()

    def _seed(self) -> MachineFiles:
        directory = self._own.directory
        files = MachineFiles(
            directory=directory,
            kernel=self._image.directory / "vmlinuz",
            initrd=self._image.directory / "initrd.img",
            disk=directory / "disk.qcow2",
            memory=directory / "memory",
            token=directory / "seed-token",
            authorized_key=directory / "seed-key",
        )
        create_overlay(files.disk, self._image.directory / "disk.raw", "raw")
        key = Ed25519PrivateKey.generate()
        _write_private(
            directory / "id_ed25519",
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
            ),
        )
        public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        _write_private(files.authorized_key, public + b" deskfork\n")
        _write_private(files.token, self._token.encode())
        return files

    def _boot(self, machine: RunningMachine, files: MachineFiles) -> tuple[GuestHealth, Channels]:
        deadline = Deadline.after(BOOT_TIMEOUT_S)
        waiting = Channels.to(
            machine.endpoints, name="template", token=self._token, private_key=files.directory, ssh_host_key=""
        )
        try:
            health = wait_until(lambda: _ready(machine, waiting), deadline, interval_s=0.25)
        finally:
            waiting.close()
        if health is None:
            raise BootTimeout(
                f"template {self._recipe.name}: the guest's services did not all answer in {BOOT_TIMEOUT_S:.0f} s; "
                f"its console ends with: {_tail(files.console_log)}"
            )
        self._lap("boot")
        return health, Channels.to(
            machine.endpoints,
            name="template",
            token=self._token,
            private_key=files.directory / "id_ed25519",
            ssh_host_key=health.ssh_host_key,
        )

    def _open(self, channels: Channels) -> None:
        if not self._recipe.opens:
            return
        self._on_progress(f"opening what {self._recipe.name} has open")
        done = channels.user_ssh.exec(
            list(self._recipe.opens), env={"DISPLAY": ":0"}, cwd=PurePosixPath("/"), timeout_s=OPEN_TIMEOUT_S
        )
        if done.exit_code:
            raise SandboxError(
                f"template {self._recipe.name}: {self._recipe.opens[0]} failed with {done.exit_code}: "
                f"{done.stderr.strip()[-500:]}"
            )
        self._lap("open")

    def _warm_up(self, channels: Channels, kernel: TcpEndpoint) -> str:
        # Whatever a service does only at its first request, it does now and not in every fork.
        channels.kernel.connect(None, deadline=Deadline.after(60.0))
        channels.root_ssh.exec(["true"], timeout_s=60.0)
        channels.user_ssh.put(b"", PurePosixPath("/tmp/.warm"))
        channels.observer.desktop()
        for _ in range(3):
            channels.kernel.run_cell("print(1)\n1", timeout_s=60.0)
        # matplotlib 3.8 sets its inline backend up only after the first cell that plots: its figure would come as text.
        inline = channels.kernel.run_cell("%matplotlib inline", timeout_s=120.0)
        if inline.error or inline.timed_out:
            raise SandboxError(f"template {self._recipe.name}: matplotlib could not be set up: {inline.error}")
        kernel_id = channels.kernel.kernel_id
        if kernel_id is None:
            raise SandboxError(f"template {self._recipe.name}: the kernel gateway named no kernel")
        channels.kernel.close()
        channels.adopt("template", kernel, kernel_id, Deadline.after(60.0))
        self._token = channels.token
        self._lap("warm")
        return kernel_id

    def _lap(self, phase: str) -> None:
        now = time.monotonic()
        self._seconds[phase] = round(now - self._started, 3)
        self._started = now


def _ready(machine: RunningMachine, channels: Channels) -> GuestHealth | None:
    if not machine.process.is_alive():
        raise SandboxError(f"{machine.name}: QEMU ended while booting: {machine.process.complaint()}")
    try:
        health = channels.observer.health(Deadline.after(5.0))
    except TransportError:
        return None
    if health is None:
        return None
    services = health.services
    return health if services.x and services.session and services.gateway and services.sshd else None


def _write_private(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)


def _tail(path: Path, size: int = 300) -> str:
    try:
        return path.read_bytes()[-size:].decode(errors="replace").strip() or "(nothing)"
    except OSError:
        return "(nothing)"
