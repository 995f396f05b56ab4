"""A sandbox that is a QEMU machine, whichever provider started it."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from deskfork.core.errors import ConfigError, SandboxError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.base import Checkpoint, Sandbox, SandboxFacts
from deskfork.sandbox.channels import Channels
from deskfork.sandbox.final.sealing import end, flush
from deskfork.sandbox.final.state import FinalState, final_disk
from deskfork.sandbox.forking import fork_machine
from deskfork.sandbox.frozen.checkpoint import take_checkpoint
from deskfork.sandbox.frozen.frozen import Frozen
from deskfork.sandbox.launcher import Launcher
from deskfork.sandbox.live import Claim
from deskfork.sandbox.running import RunningMachine
from deskfork.sandbox.vm_guest import VmGuest

CHECKPOINT_TIMEOUT_S = 180.0
LOGS_TIMEOUT_S = 30.0
MAX_LOG_BYTES = 4 * 1024 * 1024


class VmSandbox(VmGuest):
    """The life of one forked machine."""

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
        self._final: FinalState | None = None
        self._frozen = frozen
        frozen.retain()
        try:
            super().__init__(claim.record.id, *self._go_on_from(frozen))
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
            baked=manifest.baked.key if manifest.baked else "",
        )

    @property
    def qemu_pid(self) -> int:
        """The process id of its QEMU."""
        return self._machine.process.pid

    @property
    def directory(self) -> Path:
        """Where its overlay, sockets and logs lie."""
        return self._claim.directory

    def is_alive(self) -> bool:
        """Whether QEMU still runs."""
        return not self._is_closed and self._final is None and self._machine.process.is_alive()

    def save_logs(self, directory: Path) -> None:
        """Write console.log and, while the machine runs, services.log; see `Sandbox.save_logs`."""
        with self._machine.files.console_log.open("rb") as console:
            (directory / "console.log").write_bytes(console.read(MAX_LOG_BYTES))
        if self._final is not None:
            return
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

    def seal(self, *, timeout_s: float) -> FinalState:
        """Flush the guest's file systems and end the machine, keeping its disk; see `Sandbox.seal`."""
        self._require_alive()
        deadline = Deadline.after(timeout_s)
        flushed_by = flush(self._machine, self._channels, deadline)
        end(self._machine, deadline)
        self._channels.close()
        self._final = final_disk(self._machine.files.disk, self._frozen, flushed_by)
        return self._final

    def hand_over(self) -> tuple[RunningMachine, str]:
        """Close the channels; return the machine and what its services want, for whoever freezes it for good.

        Only `close` may follow.

        Raises:
            SandboxError: The machine is gone.
        """
        self._require_alive()
        self._channels.close()
        return self._machine, self._channels.token

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
        return fork_machine(self._claim, self._launcher, frozen)

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
            raise SandboxError(f"{self._name}: the sandbox is closed")
        if self._final is not None:
            raise SandboxError(f"{self._name}: the sandbox is sealed: its machine has ended, its disk can be examined")
