"""How a QEMU process is started and ended: the one thing in which the VM providers differ."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from deskfork.sandbox.accel import Acceleration
from deskfork.transport.endpoint import TcpEndpoint

MachineKind = Literal["docker", "qemu"]


class MachineProcess(Protocol):
    """One running QEMU."""

    @property
    def pid(self) -> int:
        """QEMU's process id, as this machine counts."""
        ...

    def is_alive(self) -> bool:
        """Whether QEMU still runs."""
        ...

    def endpoints(self, forwards: str) -> dict[str, TcpEndpoint]:
        """Return where the guest's services are reached, by name.

        Args:
            forwards: What QEMU's monitor prints for `info usernet`.
        """
        ...

    def complaint(self) -> str:
        """What QEMU last said on its standard error, for error messages."""
        ...

    def kill(self) -> None:
        """End QEMU and wait until it is gone; calling it again does nothing."""
        ...


class Launcher(Protocol):
    """Starts QEMU as a child process or in a container."""

    @property
    def name(self) -> MachineKind:
        """The provider that it serves."""
        ...

    def qemu_version(self) -> str:
        """Return QEMU's full version; machines are forked only by the version that froze them.

        Raises:
            ConfigError: There is no QEMU that can be used, and what to install.
        """
        ...

    def acceleration(self) -> Acceleration:
        """Return what guests run under, and why."""
        ...

    def forwards(self) -> tuple[tuple[str, int, int], ...]:
        """Return the port forwards to give to QEMU."""
        ...

    def start(
        self, name: str, arguments: Sequence[str], *, directory: Path, readable: Sequence[Path]
    ) -> MachineProcess:
        """Start QEMU.

        Args:
            name: The sandbox's id; what is created carries it as a label.
            arguments: QEMU's arguments.
            directory: The machine's own folder, writable for QEMU.
            readable: Further folders that QEMU reads; the same one may be there twice.

        Raises:
            SandboxError: It could not be started.
        """
        ...
