"""A sandbox that is a QEMU machine, whichever provider started it."""

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import Self

from PIL.Image import Image

from deskfork.core.errors import ConfigError, InfraError, SandboxError, TransportError
from deskfork.core.types import CellResult, CommandResult, DesktopState
from deskfork.core.waiting import Deadline
from deskfork.sandbox.base import MAX_FETCH_BYTES, Checkpoint, Sandbox, SandboxFacts
from deskfork.sandbox.channels import Channels
from deskfork.sandbox.checkpoint import take_checkpoint
from deskfork.sandbox.frozen import Frozen
from deskfork.sandbox.launcher import Launcher
from deskfork.sandbox.live import Address, Claim
from deskfork.sandbox.machine import MachineFiles, Start
from deskfork.sandbox.running import RunningMachine, fork_files
from deskfork.transport.screen import decode_ppm

FORK_TIMEOUT_S = 60.0
CHECKPOINT_TIMEOUT_S = 180.0
SPACE_MIB = 64
"""What a fork wants to find free for what it is going to write; QEMU stops a guest whose disk cannot be written."""
LOGS_TIMEOUT_S = 30.0
MAX_LOG_BYTES = 4 * 1024 * 1024


class VmSandbox:
    """One forked machine and the channels into it."""

    def __init__(
        self,
        claim: Claim,
        launcher: Launcher,
        frozen: Frozen,
        *,
        on_close: Callable[["VmSandbox"], None],
        fork_from: Callable[[Frozen, bool], "VmSandbox"],
    ) -> None:
        """Fork `frozen` and make the guest its own.

        Args:
            claim: The sandbox's folder; released when the sandbox closes.
            launcher: Starts QEMU.
            frozen: What to go on from.
            on_close: Told once when the sandbox has closed.
            fork_from: Opens a further sandbox, for `branch`.

        Raises:
            SandboxError: The fork did not come up; nothing of it is left.
        """
        self._claim = claim
        self._launcher = launcher
        self._on_close = on_close
        self._fork_from = fork_from
        self._checkpoints: dict[str, Frozen] = {}
        self._is_closed = False
        self._frozen = frozen
        frozen.retain()
        try:
            self._machine, self._channels = self._go_on_from(frozen)
        except BaseException:
            frozen.release()
            claim.release()
            raise

    @property
    def facts(self) -> SandboxFacts:
        """What is known of this sandbox."""
        manifest = self._frozen.manifest
        return SandboxFacts(
            id=self._claim.record.id,
            provider=self._launcher.name,
            template=manifest.name,
            template_digest=manifest.digest,
            acceleration=manifest.machine.acceleration,
            width_px=manifest.machine.width_px,
            height_px=manifest.machine.height_px,
            opened=manifest.opened,
            network=self._claim.record.network,
        )

    @property
    def qemu_pid(self) -> int:
        """The process id of its QEMU."""
        return self._machine.process.pid

    @property
    def directory(self) -> Path:
        """Where its overlay, sockets and logs lie."""
        return self._claim.directory

    def exec(
        self,
        argv: list[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: PurePosixPath | None = None,
        as_root: bool = False,
        timeout_s: float,
    ) -> CommandResult:
        """Run one program in the guest; see `Guest.exec`."""
        self._require_alive()
        ssh = self._channels.root_ssh if as_root else self._channels.user_ssh
        with self._blaming_the_machine():
            return ssh.exec(argv, env={"DISPLAY": ":0", **(env or {})}, cwd=cwd, timeout_s=timeout_s)

    def put(self, source: Path | bytes, target: PurePosixPath, *, timeout_s: float = 60.0) -> None:
        """Copy into the guest; see `Guest.put`."""
        self._require_alive()
        with self._blaming_the_machine():
            self._channels.user_ssh.put(source, target, timeout_s=timeout_s)

    def get(
        self, source: PurePosixPath, target: Path, *, max_bytes: int = MAX_FETCH_BYTES, timeout_s: float = 60.0
    ) -> None:
        """Copy out of the guest; see `Guest.get`."""
        self._require_alive()
        with self._blaming_the_machine():
            self._channels.user_ssh.get(source, target, max_bytes=max_bytes, timeout_s=timeout_s)

    def run_cell(self, code: str, *, timeout_s: float) -> CellResult:
        """Run Python in the guest's kernel; see `Guest.run_cell`."""
        self._require_alive()
        with self._blaming_the_machine():
            return self._channels.kernel.run_cell(code, timeout_s=timeout_s)

    def screenshot(self) -> Image:
        """Return the screen as QEMU shows it; see `Guest.screenshot`."""
        self._require_alive()
        picture = self._claim.directory / "screen.ppm"
        with self._blaming_the_machine():
            self._machine.qmp.screendump(picture)
            return decode_ppm(picture)

    def desktop(self) -> DesktopState:
        """Ask the observer; see `Guest.desktop`."""
        self._require_alive()
        with self._blaming_the_machine():
            return self._channels.observer.desktop()

    def is_alive(self) -> bool:
        """Whether QEMU still runs."""
        return not self._is_closed and self._machine.process.is_alive()

    def save_logs(self, directory: Path) -> None:
        """Write console.log and services.log; see `Sandbox.save_logs`."""
        with self._machine.files.console_log.open("rb") as console:
            (directory / "console.log").write_bytes(console.read(MAX_LOG_BYTES))
        services = self.exec(
            ["journalctl", "-b", "--no-pager", "-q", "-n", "500"], as_root=True, timeout_s=LOGS_TIMEOUT_S
        )
        (directory / "services.log").write_text(services.stdout[:MAX_LOG_BYTES] + services.stderr[:MAX_LOG_BYTES])

    def checkpoint(self) -> Checkpoint:
        """Freeze this instant and go on; see `Sandbox.checkpoint`.

        The machine stands still while its memory is written, all of it that is not zero.
        """
        started = time.monotonic()
        frozen = self._freeze_here()
        frozen.retain()
        self._checkpoints[frozen.manifest.digest] = frozen
        written = sum(file.stat().st_blocks * 512 for file in frozen.directory.iterdir())
        return Checkpoint(
            id=frozen.directory.name,
            digest=frozen.manifest.digest,
            bytes_written=written,
            duration_s=time.monotonic() - started,
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go back to a checkpoint of this sandbox; see `Sandbox.restore`."""
        self._require_open()
        frozen = self._checkpoints.get(checkpoint.digest)
        if frozen is None:
            raise ConfigError(f"{self._claim.record.id}: {checkpoint.id} is no checkpoint of this sandbox")
        self._channels.close()
        self._machine.close()
        frozen.retain()
        self._frozen.release()
        self._frozen = frozen
        self._machine, self._channels = self._go_on_from(frozen)

    def branch(self, n: int) -> list[Sandbox]:
        """Make `n` sandboxes that go on from this instant; see `Sandbox.branch`."""
        if n < 1:
            raise ConfigError(f"{self._claim.record.id}: branch({n}): at least one branch must be asked for")
        frozen = self._freeze_here()
        frozen.retain()
        with ExitStack() as undo:
            undo.callback(frozen.release)
            branches: list[Sandbox] = []
            with ExitStack() as opened:
                for _ in range(n):
                    branches.append(opened.enter_context(self._fork_from(frozen, self._claim.record.network)))
                opened.pop_all()
        return branches

    def close(self) -> None:
        """End the machine and remove its files; calling it again does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        with ExitStack() as each:
            each.callback(self._on_close, self)
            each.callback(self._claim.release)
            each.callback(self._frozen.release)
            for frozen in self._checkpoints.values():
                each.callback(frozen.release)
            each.callback(self._machine.close)
            each.callback(self._channels.close)

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the sandbox."""
        self.close()

    def _go_on_from(self, frozen: Frozen) -> tuple[RunningMachine, Channels]:
        deadline = Deadline.after(FORK_TIMEOUT_S)
        manifest, name = frozen.manifest, self._claim.record.id
        files = fork_files(self._claim.directory, frozen)
        self._write_files(files, frozen)
        start = Start(
            incoming=f"file:{frozen.state}",
            network=self._claim.record.network,
            forwards=self._launcher.forwards(),
        )
        with ExitStack() as undo:
            machine = RunningMachine.start(
                name, self._launcher, manifest.machine, files, start, readable=frozen.lineage(), deadline=deadline
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
            try:
                channels.adopt(name, machine.endpoints["kernel"], manifest.kernel_id, deadline)
            except TransportError as error:
                trouble = machine.trouble()
                raise SandboxError(
                    f"{name}: the fork did not answer: {error}{f' ({trouble})' if trouble else ''}"
                ) from error
            self._record(machine, frozen)
            undo.pop_all()
        return machine, channels

    def _write_files(self, files: MachineFiles, frozen: Frozen) -> None:
        try:
            status = os.statvfs(files.directory)
            if status.f_bavail * status.f_frsize < SPACE_MIB << 20:
                raise OSError(errno.ENOSPC, f"less than {SPACE_MIB} MiB are free; free some, or set DESKFORK_CACHE")
            for stale in (files.qmp_socket, files.vnc_socket):
                stale.unlink(missing_ok=True)
            files.disk.unlink(missing_ok=True)
            shutil.copyfile(frozen.empty_overlay, files.disk)
            files.token.write_text("-")
            files.authorized_key.write_text("-")
        except OSError as error:
            raise SandboxError(f"{files.directory.name}: its files could not be written: {error}") from error

    def _record(self, machine: RunningMachine, frozen: Frozen) -> None:
        try:
            self._claim.update(
                qemu_pid=machine.process.pid,
                endpoints={key: Address(host=at.host, port=at.port) for key, at in machine.endpoints.items()},
                private_key=frozen.private_key,
                ssh_host_key=frozen.manifest.ssh_host_key,
            )
        except OSError as error:
            raise SandboxError(f"{machine.name}: its record could not be written: {error}") from error

    def _freeze_here(self) -> Frozen:
        self._require_alive()
        return take_checkpoint(
            self._machine,
            self._frozen,
            provider=self._launcher.name,
            token=self._channels.token,
            cache_dir=self._claim.directory.parent.parent,
            deadline=Deadline.after(CHECKPOINT_TIMEOUT_S),
        )

    def _require_open(self) -> None:
        if self._is_closed:
            raise SandboxError(f"{self._claim.record.id}: the sandbox is closed")

    def _require_alive(self) -> None:
        self._require_open()
        if not self._machine.process.is_alive():
            raise SandboxError(f"{self._claim.record.id}: the machine is gone: {self._machine.process.complaint()}")

    @contextmanager
    def _blaming_the_machine(self) -> Iterator[None]:
        """Turn a channel's failure into a SandboxError when the machine behind it does not run."""
        try:
            yield
        except InfraError as error:
            if trouble := self._machine.trouble():
                raise SandboxError(f"{self._claim.record.id}: {error} ({trouble})") from error
            raise
