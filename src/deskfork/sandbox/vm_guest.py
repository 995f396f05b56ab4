"""What can be asked of the guest in a QEMU machine."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from PIL.Image import Image

from deskfork.core.errors import InfraError, SandboxError
from deskfork.core.types import AccessibilityTree, CellResult, CommandResult, DesktopState
from deskfork.sandbox.base import MAX_FETCH_BYTES
from deskfork.sandbox.channels import Channels
from deskfork.sandbox.running import RunningMachine
from deskfork.transport.screen import decode_ppm


class VmGuest:
    """A running machine and the channels into it; see `Guest` for its methods.

    Whether it is still there to be asked is for `_require_open` to say.
    """

    def __init__(self, name: str, machine: RunningMachine, channels: Channels) -> None:
        """Wrap a machine whose guest answers.

        Args:
            name: The sandbox's id, for messages.
            machine: The machine.
            channels: The channels into its guest.
        """
        self._name = name
        self._machine = machine
        self._channels = channels

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
        picture = self._machine.files.directory / "screen.ppm"
        with self._blaming_the_machine():
            self._machine.qmp.screendump(picture)
            return decode_ppm(picture)

    def desktop(self) -> DesktopState:
        """Ask the observer; see `Guest.desktop`."""
        self._require_alive()
        with self._blaming_the_machine():
            return self._channels.observer.desktop()

    def accessibility(self) -> AccessibilityTree:
        """Ask the observer; see `Guest.accessibility`."""
        self._require_alive()
        with self._blaming_the_machine():
            return self._channels.observer.accessibility()

    def _require_open(self) -> None:
        """Refuse what comes too late.

        Raises:
            SandboxError: The sandbox was closed, or sealed.
        """

    def _require_alive(self) -> None:
        self._require_open()
        if not self._machine.process.is_alive():
            raise SandboxError(f"{self._name}: the machine is gone: {self._machine.process.complaint()}")

    @contextmanager
    def _blaming_the_machine(self) -> Iterator[None]:
        """Turn a channel's failure into a SandboxError when the machine behind it does not run."""
        try:
            yield
        except InfraError as error:
            if trouble := self._machine.trouble():
                raise SandboxError(f"{self._name}: {error} ({trouble})") from error
            raise
