"""A fresh fork in which the final disk of another machine lies: what was made there is read with programs from here.

The agent had root in the other machine, so its programs, its system's settings and whatever else programs run without
being told to are not to be believed. All of the fork's own programs stay: the system, the Python environments. Of the
sealed disk come /home and /tmp, without the places in a home from which programs take code or orders. Files are read
from everywhere in it, those places too: reading runs nothing.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import NoReturn

from deskfork.core.errors import GuestFileError, InfraError, SandboxError, TransportError
from deskfork.core.types import CellResult, CommandResult
from deskfork.core.waiting import Deadline
from deskfork.sandbox.base import GUEST_HOME, MAX_FETCH_BYTES, Checkpoint, Sandbox
from deskfork.sandbox.channels import Channels
from deskfork.sandbox.final.masks import MASKED, SAFE_ENV, is_masked
from deskfork.sandbox.final.state import FinalState
from deskfork.sandbox.forking import fork_machine
from deskfork.sandbox.frozen.frozen import Frozen
from deskfork.sandbox.launcher import Launcher
from deskfork.sandbox.live import Claim
from deskfork.sandbox.running import RunningMachine, create_overlay
from deskfork.sandbox.vm import VmSandbox

ADOPT_TIMEOUT_S = 60.0
FINAL_ROOT = PurePosixPath("/mnt/final")
"""Where all of the sealed disk can be read, and nothing on it be executed."""
_DEVICE = "/dev/vdb"
_SCRIPT = Path(__file__).with_name("adopt_home.sh")
_NO_FILE_SYSTEM = 65
_MAKE_WAY = 'if [ -e "$1" ] || [ -L "$1" ]; then chattr -i -- "$1" 2>/dev/null; rm -rf -- "$1"; fi'
# The kernel was started in the fork's own home, and its programs would import what the agent left in its new one.
_MOVE_KERNEL = """exec('''
import os, sys
sys.path[:] = [path for path in sys.path if path]
os.chdir(next(filter(os.path.isdir, ("/home/user/Desktop", "/home/user"))))
''', {})"""


class ExaminedSandbox(VmSandbox):
    """A fork of a template in which a final disk's home and temporary files lie in place of its own."""

    def __init__(
        self,
        claim: Claim,
        launcher: Launcher,
        frozen: Frozen,
        state: FinalState,
        *,
        on_close: Callable[[VmSandbox], None],
    ) -> None:
        """Fork `frozen` and attach the disk of `state` to it.

        Args:
            claim: The sandbox's folder; released when the sandbox closes.
            launcher: Starts QEMU.
            frozen: A template that has nothing open.
            state: Whose disk to attach; it is only read.
            on_close: Told once when the sandbox has closed.

        Raises:
            SandboxError: The fork did not come up; nothing of it is left.
            GuestFileError: The disk holds no file system that the guest could mount.
        """
        self._state = state
        self._is_kernel_moved = False
        super().__init__(claim, launcher, frozen, on_close=on_close, fork_from=self._refuse_to_fork)

    def exec(
        self,
        argv: list[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: PurePosixPath | None = None,
        as_root: bool = False,
        timeout_s: float,
    ) -> CommandResult:
        """Run one program of the fork; Python imports nothing from the working directory or the script's."""
        return super().exec(argv, env={**SAFE_ENV, **(env or {})}, cwd=cwd, as_root=as_root, timeout_s=timeout_s)

    def put(self, source: Path | bytes, target: PurePosixPath, *, timeout_s: float = 60.0) -> None:
        """Copy into the guest; a file replaces whatever the agent left at its place."""
        if isinstance(source, bytes) or not source.is_dir():
            place = str(GUEST_HOME / target)
            super().exec(["sudo", "-n", "sh", "-c", _MAKE_WAY, "make_way", place], timeout_s=timeout_s)
        super().put(source, target, timeout_s=timeout_s)

    def get(
        self, source: PurePosixPath, target: Path, *, max_bytes: int = MAX_FETCH_BYTES, timeout_s: float = 60.0
    ) -> None:
        """Copy out of the guest; what programs do not see of the agent's home is read from its disk."""
        place = GUEST_HOME / source
        if is_masked(place):
            source = FINAL_ROOT / place.relative_to("/")
        super().get(source, target, max_bytes=max_bytes, timeout_s=timeout_s)

    def run_cell(self, code: str, *, timeout_s: float) -> CellResult:
        """Run Python in the fork's kernel, from the agent's Desktop."""
        if not self._is_kernel_moved:
            super().run_cell(_MOVE_KERNEL, timeout_s=timeout_s)
            self._is_kernel_moved = True
        return super().run_cell(code, timeout_s=timeout_s)

    def checkpoint(self) -> Checkpoint:
        """Refuse: the final state is there to be examined again.

        Raises:
            SandboxError: Always.
        """
        self._refuse()

    def branch(self, n: int) -> list[Sandbox]:
        """Refuse, as `checkpoint`.

        Raises:
            SandboxError: Always.
        """
        self._refuse()

    def seal(self, *, timeout_s: float) -> FinalState:
        """Refuse, as `checkpoint`.

        Raises:
            SandboxError: Always.
        """
        self._refuse()

    def _refuse(self) -> NoReturn:
        self._require_open()
        raise SandboxError(f"{self._name}: only examines a final state: examine that again instead")

    def _refuse_to_fork(self, frozen: Frozen, network: bool) -> NoReturn:
        self._refuse()

    def _go_on_from(self, frozen: Frozen) -> tuple[RunningMachine, Channels]:
        layer = self._claim.directory / "final.qcow2"
        create_overlay(layer, self._state.disk, "qcow2")
        # SSH's handshake takes the guest's processors longer than all else: it goes on beside the rest of the fork.
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix=self._claim.record.id) as beside, ExitStack() as undo:
            adoptions = []

            def begin(machine: RunningMachine, channels: Channels) -> None:
                _attach(machine, layer)
                adoptions.append(beside.submit(self._adopt, machine, channels))

            machine, channels = fork_machine(
                self._claim, self._launcher, frozen, readable=self._state.readable, on_running=begin
            )
            undo.callback(machine.close)
            undo.callback(channels.close)
            for adoption in adoptions:
                adoption.result()
            undo.pop_all()
        return machine, channels

    def _adopt(self, machine: RunningMachine, channels: Channels) -> None:
        deadline = Deadline.after(ADOPT_TIMEOUT_S)
        # By sudo, because files are fetched on the user's connection: a second one would take longer than all this.
        command = ["sudo", "-n", "sh", "-c", _SCRIPT.read_text(), "adopt_home", _DEVICE, *MASKED]
        what = f"{machine.name}: the final disk {self._state.disk}"
        try:
            done = channels.user_ssh.exec(command, timeout_s=deadline.remaining_s)
        except InfraError as error:
            raise SandboxError(f"{what} could not be examined: {machine.trouble() or error}") from error
        if done.exit_code == _NO_FILE_SYSTEM:
            raise GuestFileError(f"{what} holds no file system that can be mounted: {done.stderr.strip()[-300:]}")
        if done.timed_out:
            raise SandboxError(f"{what} could not be mounted in {ADOPT_TIMEOUT_S:.0f} s")
        if done.exit_code:
            raise SandboxError(f"{what} could not be examined: {done.stderr.strip()[-300:]}")


def _attach(machine: RunningMachine, layer: Path) -> None:
    """Plug a disk into a running machine; what is written to it stays in `layer`.

    Raises:
        SandboxError: QEMU did not take it.
    """
    file = {"driver": "file", "filename": str(layer)}
    cache = {"direct": False, "no-flush": True}
    try:
        machine.qmp.execute("blockdev-add", {"driver": "qcow2", "node-name": "final", "file": file, "cache": cache})
        machine.qmp.execute("device_add", {"driver": "virtio-blk-pci", "drive": "final", "id": "final"})
    except TransportError as error:
        raise SandboxError(f"{machine.name}: the final disk could not be attached: {error}") from error
