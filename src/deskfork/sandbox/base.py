"""The seams of the sandbox layer: what others may do with a guest, a sandbox and a provider."""

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Protocol, Self

from PIL.Image import Image

from deskfork.core.types import AccessibilityTree, CellResult, CommandResult, DesktopState
from deskfork.sandbox.facts import Checkpoint, SandboxFacts, TemplateFacts
from deskfork.sandbox.final.state import FinalState, load_state
from deskfork.sandbox.templates.baked import Baked, BakeOptions

__all__ = [
    "GUEST_DESKTOP",
    "GUEST_HOME",
    "MAX_FETCH_BYTES",
    "Checkpoint",
    "FinalState",
    "Guest",
    "Sandbox",
    "SandboxFacts",
    "SandboxProvider",
    "TemplateFacts",
    "load_state",
]

GUEST_HOME = PurePosixPath("/home/user")
GUEST_DESKTOP = GUEST_HOME / "Desktop"
MAX_FETCH_BYTES = 256 * 1024 * 1024
"""What `Guest.get` accepts unless told otherwise: a guest must not be able to fill the host's disk."""


class Guest(Protocol):
    """A running desktop, as set-up, agents and evaluation see it."""

    def exec(
        self,
        argv: list[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: PurePosixPath | None = None,
        as_root: bool = False,
        timeout_s: float,
    ) -> CommandResult:
        """Run one program in the guest (no shell is involved, DISPLAY is set) and wait for it.

        Args:
            argv: Program and arguments.
            env: Added to the guest user's environment.
            cwd: Working directory, the user's home by default.
            as_root: Run as root rather than as the guest's user.
            timeout_s: Wall-clock limit in seconds, measured on the host.

        Returns:
            The program's own result, whatever its exit code; `timed_out` is set if `timeout_s` passed and it was
            killed.

        Raises:
            SandboxError: The guest is not running.
            TransportError: sshd never took the command.
        """
        ...

    def put(self, source: Path | bytes, target: PurePosixPath, *, timeout_s: float = 60.0) -> None:
        """Copy a host file, a host directory (with all in it) or bytes to the guest path `target`.

        The guest's user owns the copy. Missing parents are made; an existing file is replaced, an existing directory is
        merged into.

        Raises:
            TransportError: The copy did not complete.
        """
        ...

    def get(
        self, source: PurePosixPath, target: Path, *, max_bytes: int = MAX_FETCH_BYTES, timeout_s: float = 60.0
    ) -> None:
        """Copy a guest file or directory to the host path `target`. Links in it are never followed out of it.

        Raises:
            GuestFileError: There is no such file, it is no regular file or directory, or it is larger than `max_bytes`.
            TransportError: The copy did not complete.
        """
        ...

    def run_cell(self, code: str, *, timeout_s: float) -> CellResult:
        """Run Python `code` in the guest's warm Jupyter kernel, whose state persists from cell to cell.

        Raises:
            KernelLost: The kernel died, or ignored its interrupt after `timeout_s`.
            TransportError: The kernel gateway did not answer as agreed.
        """
        ...

    def screenshot(self) -> Image:
        """Return the screen as the hypervisor shows it: RGB, origin top left; the guest is not asked."""
        ...

    def desktop(self) -> DesktopState:
        """Ask the guest's observer for screen size, pointer and windows (guest-supplied: data, not truth).

        Raises:
            TransportError: The observer did not answer as agreed.
        """
        ...

    def accessibility(self) -> AccessibilityTree:
        """Ask the guest's applications, through AT-SPI, what of them is on the screen (data, not truth).

        The first look makes browsers describe their pages, which takes them seconds and costs them some time ever
        after: look once before steps are timed, and not at all where nobody wants to know.

        Raises:
            TransportError: The observer did not answer as agreed.
        """
        ...


class Sandbox(Guest, Protocol):
    """One running machine, owned by whoever opened it; leaving the `with` block closes it."""

    @property
    def facts(self) -> SandboxFacts:
        """What is known of it."""
        ...

    def is_alive(self) -> bool:
        """Whether the machine still runs; asks the host, not the guest."""
        ...

    def save_logs(self, directory: Path) -> None:
        """Write what the machine and its services logged to files in the host folder `directory`.

        Raises:
            InfraError: The machine did not hand its services' logs over; its console is written all the same.
        """
        ...

    def checkpoint(self) -> Checkpoint:
        """Freeze an instant of this machine and go on; the checkpoint is deleted with the sandbox.

        Raises:
            SandboxError: The machine is gone, or its state could not be written.
        """
        ...

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go back to `checkpoint`: memory, processes, disk and screen are what they were; the clock is not.

        Raises:
            ConfigError: The checkpoint is not one of this sandbox.
            SandboxError: The machine did not come back.
        """
        ...

    def branch(self, n: int) -> "list[Sandbox]":
        """Make `n` further sandboxes that go on from this instant, each with its own tokens; the caller closes them."""
        ...

    def seal(self, *, timeout_s: float) -> FinalState:
        """Flush the guest's file systems and end the machine; its disk stays until the sandbox is closed.

        After that nothing in the guest changes any more, and every operation on it is refused as sealed;
        `SandboxProvider.examine` opens what it left. Logs are to be saved before: later there is only the console's.

        Raises:
            SandboxError: The machine was gone already, did not end in time, or is sealed or closed.
            HostDiskFull: The disk could not be written.
        """
        ...

    def close(self) -> None:
        """End the machine and remove everything it left on the host; calling it again does nothing."""
        ...

    def __enter__(self) -> Self:
        """Return self."""
        ...

    def __exit__(self, *exc_info: object) -> None:
        """Close the sandbox."""
        ...


class SandboxProvider(Protocol):
    """Opens sandboxes; what it opened ends with it, or with its process."""

    @property
    def name(self) -> str:
        """`docker`, `qemu` or `fake`."""
        ...

    def fork(self, template: str, *, network: bool = False, baked: str = "") -> Sandbox:
        """Start a sandbox from the template of that name, ready for its first cell.

        Args:
            template: `desktop`, `jupyter`, or another that was built.
            network: Whether the guest may open connections to the outside.
            baked: Key of a set-up (`tasks.setup_key`): where it was baked over this template with the same `network`,
                the sandbox starts with it done and says so in `SandboxFacts.baked`.

        Raises:
            ConfigError: There is no such template.
            SandboxError: The fork did not come up, or what was baked is damaged; nothing of it is left.
        """
        ...

    def describe(self, template: str) -> TemplateFacts:
        """Return what a fork of `template` would start from.

        Raises:
            ConfigError: There is no such template.
        """
        ...

    def bake(
        self, template: str, key: str, prepare: Callable[[Sandbox], None], *, task: str, options: BakeOptions
    ) -> Baked:
        """Fork a template, run a set-up in it once, and freeze what came of it, from where `fork` goes on then.

        Args:
            template: What to fork.
            key: Of the set-up; when it was baked already, nothing is done.
            prepare: Runs the set-up.
            task: The task's id, for listings and messages.
            options: Whether the guest has a network, and the like.

        Raises:
            ConfigError: There is no such template.
            InfraError: Set-up failed, or its outcome could not be frozen; nothing of it is left.
        """
        ...

    def examine(self, state: FinalState, *, network: bool = False) -> Sandbox:
        """Start a sandbox in which what a sealed machine left can be read and judged, as often as wanted.

        It is a fresh fork of the template `desktop`, all of whose programs, settings and services are its own. Of the
        sealed disk it has /home and /tmp. What programs would run or obey without being told to is not among them
        (shells' and Python's start-up files, Jupyter's and other programs' settings, ~/.local/lib; `masks.MASKED`
        has the list), and ~/anaconda3 is the fork's own, but for the kernels and environments that were added to it;
        `Guest.get` reads all these, too, as the agent left them; the rest of the disk lies below /mnt/final. A home
        that is a link is an empty one. What is changed in the sandbox is gone with it.

        It is closed like any other sandbox, and cannot be frozen, branched or sealed again.

        Args:
            state: What `Sandbox.seal` returned, or `load_state` found.
            network: Whether the guest may open connections to the outside.

        Raises:
            ConfigError: The state's template or image is not in the cache any more, or is another one.
            GuestFileError: The disk holds no file system that a guest could mount: the agent's doing.
            SandboxError: The fork did not come up; nothing of it is left.
        """
        ...

    def close(self) -> None:
        """Close every sandbox that is still open."""
        ...
