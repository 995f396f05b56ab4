"""One sandbox of the `fake` provider; see there for what it does not do."""

import secrets
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol, Self

from PIL import Image

from deskfork.core.errors import ConfigError, HostDiskFull, KernelLost, SandboxError
from deskfork.core.types import AccessibilityTree, CellResult, CommandResult, DesktopState
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import MAX_FETCH_BYTES, Checkpoint, Sandbox, SandboxFacts
from deskfork.sandbox.fake.desktop import FakeDesktop
from deskfork.sandbox.fake.faults import FakeFaults
from deskfork.sandbox.fake.kernel import kill_marked
from deskfork.sandbox.fake.kernel_client import FakeKernel, KernelHome
from deskfork.sandbox.fake.machine import FakeMachine, copy_tree, locked, tree_bytes
from deskfork.sandbox.final.state import FinalState

FOLDER_PREFIX = "deskfork-fake-"
OWNER_LOCK = "owner.lock"
FAKE_IMAGE = "none"
"""What fakes have for the digest of an image."""
_END_TIMEOUT_S = 10.0


@dataclass
class _Snapshot:
    """A copy of the tree and a parked copy of the kernel."""

    root: Path
    kernel: FakeKernel


class FakeOwner(Protocol):
    """What opened a fake sandbox, and keeps count of the open ones."""

    def open(self, facts: SandboxFacts, *, origin: "FakeSandbox | None") -> "FakeSandbox":
        """Start a sandbox with these facts and an id of its own, as a copy of `origin` if there is one."""
        ...

    def forget(self, sandbox: "FakeSandbox") -> None:
        """Take a closed sandbox off the list of open ones."""
        ...


class FakeSandbox:
    """A folder, a kernel process and the programs started in them."""

    def __init__(self, owner: FakeOwner, facts: SandboxFacts, parent: Path, faults: FakeFaults) -> None:
        self._owner = owner
        self._facts = facts
        self._faults = faults
        self._base = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=parent))
        self._lock = locked(self._base / OWNER_LOCK)
        self._lock.write(facts.id)
        self._lock.flush()
        self._machine = FakeMachine(facts.id, self._base / "root")
        self._kernel: FakeKernel | None = None
        self._snapshots: dict[str, _Snapshot] = {}
        self._counts = {"cell": 0, "program": 0}
        self._final: FinalState | None = None
        self._is_gone = False
        self._is_closed = False

    @property
    def facts(self) -> SandboxFacts:
        """What is known of it."""
        return self._facts

    def start(self, origin: "FakeSandbox | None" = None) -> None:
        """Come up: empty, or as a copy of `origin`."""
        self._machine.create()
        if origin is None:
            self._kernel = FakeKernel.start(self._place(self._machine), self._machine.env())
        else:
            copy_tree(origin._machine.root, self._machine.root)
            self._kernel = origin._running().fork(self._place(self._machine))
            self._counts = dict(origin._counts)

    def exec(
        self,
        argv: list[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: PurePosixPath | None = None,
        as_root: bool = False,
        timeout_s: float,
    ) -> CommandResult:
        """Run one host program in the sandbox's folder; `as_root` changes nothing."""
        self._running()
        if self._count("program") == self._faults.dies_in_exec:
            self._die()
            raise SandboxError(f"{self._facts.id}: the machine is gone (in {argv[0]})")
        return self._machine.run(argv, env=env, cwd=cwd, timeout_s=timeout_s)

    def put(self, source: Path | bytes, target: PurePosixPath, *, timeout_s: float = 60.0) -> None:
        """Copy into the sandbox's folder."""
        self._running()
        self._machine.put(source, target)

    def get(
        self, source: PurePosixPath, target: Path, *, max_bytes: int = MAX_FETCH_BYTES, timeout_s: float = 60.0
    ) -> None:
        """Copy out of the sandbox's folder."""
        self._running()
        self._machine.get(source, target, max_bytes)

    def run_cell(self, code: str, *, timeout_s: float) -> CellResult:
        """Run a cell in the kernel process."""
        kernel = self._running()
        cell = self._count("cell")
        if cell == self._faults.host_full_in_cell:
            raise HostDiskFull(f"{self._facts.id}: the host's disk is full (in cell {cell})")
        if cell == self._faults.dies_in_cell:
            self._die()
            raise KernelLost(f"{self._facts.id}: the machine is gone (in cell {cell})")
        return kernel.run(code, timeout_s)

    def screenshot(self) -> Image.Image:
        """Draw a picture that changes with the files on the desktop and the number of cells that ran."""
        return self._screen().image

    def accessibility(self) -> AccessibilityTree:
        """Describe what `screenshot` draws."""
        return self._screen().tree

    def desktop(self) -> DesktopState:
        """Return the screen's size; there are no windows."""
        self._running()
        return DesktopState(self._facts.width_px, self._facts.height_px, 0, 0, ())

    def is_alive(self) -> bool:
        """Whether it was neither closed nor killed by a fault; a dead kernel alone does not end it."""
        return not self._is_gone and not self._is_closed and self._final is None

    def save_logs(self, directory: Path) -> None:
        """Write an empty console.log: no machine, no services."""
        (directory / "console.log").write_bytes(b"")

    def checkpoint(self) -> Checkpoint:
        """Copy the tree and park a copy of the kernel; programs are not part of it."""
        started = time.monotonic()
        kernel, name = self._running(), secrets.token_hex(4)
        copied = FakeMachine(self._facts.id, self._base / "checkpoints" / name)
        copy_tree(self._machine.root, copied.root)
        self._snapshots[name] = _Snapshot(copied.root, kernel.fork(self._place(copied)))
        return Checkpoint(name, f"fake-{name}", tree_bytes(copied.root), time.monotonic() - started)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go back to a copied tree and a parked kernel."""
        self._running()
        snapshot = self._snapshots.get(checkpoint.id)
        if snapshot is None:
            raise ConfigError(f"{self._facts.id}: checkpoint {checkpoint.id} is not one of this sandbox")
        self._end_processes()
        copy_tree(snapshot.root, self._machine.root)
        self._kernel = snapshot.kernel.fork(self._place(self._machine))

    def branch(self, n: int) -> list[Sandbox]:
        """Make `n` copies of the tree and the kernel."""
        self._running()
        with ExitStack() as undo:
            made: list[Sandbox] = []
            for _ in range(n):
                made.append(self._owner.open(self._facts, origin=self))
                undo.callback(made[-1].close)
            undo.pop_all()
        return made

    def seal(self, *, timeout_s: float) -> FinalState:
        """Kill everything started inside and leave the folder as it is."""
        self._running()
        self._end_processes()
        # A kernel in which nothing was run: it removes the folder if we are killed.
        self._kernel = FakeKernel.start(self._place(self._machine), self._machine.env())
        self._final = FinalState(
            kind="folder",
            disk=self._machine.root,
            template=self._facts.template,
            image_digest=FAKE_IMAGE,
            flushed_by="sync",
        )
        return self._final

    def close(self) -> None:
        """Kill everything started inside and remove the folder."""
        if self._is_closed:
            return
        self._is_closed = True
        with ExitStack() as ending:
            ending.callback(self._lock.close)
            ending.callback(shutil.rmtree, self._base, ignore_errors=True)
            for snapshot in self._snapshots.values():
                ending.callback(snapshot.kernel.close)
            ending.callback(self._end_processes)
            ending.callback(self._owner.forget, self)

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the sandbox."""
        self.close()

    def _place(self, machine: FakeMachine) -> KernelHome:
        return KernelHome(self._facts.id, self._base, machine.home)

    def _screen(self) -> FakeDesktop:
        self._running()
        names = sorted(entry.name for entry in (self._machine.home / "Desktop").iterdir())
        return FakeDesktop.of(self._facts, self._counts["cell"], names)

    def _running(self) -> FakeKernel:
        if self._kernel is None or not self.is_alive():
            state = "closed" if self._is_closed else "sealed" if self._final is not None else "gone"
            raise SandboxError(f"{self._facts.id}: the sandbox is {state}")
        return self._kernel

    def _count(self, kind: str) -> int:
        self._counts[kind] += 1
        return self._counts[kind]

    def _die(self) -> None:
        self._is_gone = True
        self._end_processes()

    def _end_processes(self) -> None:
        if self._kernel is not None:
            self._kernel.close()
        wait_until(lambda: kill_marked(self._facts.id) == 0, Deadline.after(_END_TIMEOUT_S))
