"""A fake sandbox that examines what a sealed one left; as `sandbox.examined` does with real machines."""

import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import NoReturn

from deskfork.core.errors import SandboxError
from deskfork.core.types import CommandResult
from deskfork.sandbox.base import GUEST_HOME, MAX_FETCH_BYTES, Checkpoint, Sandbox, SandboxFacts
from deskfork.sandbox.fake.faults import FakeFaults
from deskfork.sandbox.fake.machine import FakeMachine, copy_tree
from deskfork.sandbox.fake.sandbox import FakeOwner, FakeSandbox
from deskfork.sandbox.final.masks import MASKED, OWN, SAFE_ENV, is_masked
from deskfork.sandbox.final.state import FinalState


class ExaminedFake(FakeSandbox):
    """A fake whose home and temporary files are copies of a sealed one's."""

    def __init__(self, owner: FakeOwner, facts: SandboxFacts, parent: Path, state: FinalState) -> None:
        super().__init__(owner, facts, parent, FakeFaults())
        self._sealed = FakeMachine(facts.id, self._base / "final")
        self._state = state

    def start(self, origin: FakeSandbox | None = None) -> None:
        """Come up with nothing open."""
        super().start(origin)
        copy_tree(self._state.disk, self._sealed.root)
        # The kernel's own folder is to stay the one in which it was started.
        copy_tree(self._state.disk, self._machine.root)
        (self._machine.home / "Desktop").mkdir(parents=True, exist_ok=True)
        for name in (*OWN, *MASKED):
            remove(self._machine.home / name)

    def exec(
        self,
        argv: list[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: PurePosixPath | None = None,
        as_root: bool = False,
        timeout_s: float,
    ) -> CommandResult:
        """Run one host program in the sandbox's folder."""
        return super().exec(argv, env={**SAFE_ENV, **(env or {})}, cwd=cwd, as_root=as_root, timeout_s=timeout_s)

    def put(self, source: Path | bytes, target: PurePosixPath, *, timeout_s: float = 60.0) -> None:
        """Copy into the sandbox's folder; a file replaces whatever is at its place."""
        if isinstance(source, bytes) or not source.is_dir():
            remove(self._machine.host_path(target))
        super().put(source, target, timeout_s=timeout_s)

    def get(
        self, source: PurePosixPath, target: Path, *, max_bytes: int = MAX_FETCH_BYTES, timeout_s: float = 60.0
    ) -> None:
        """Copy out of the sandbox's folder, or out of the sealed one what is left out there."""
        self._running()
        machine = self._sealed if is_masked(GUEST_HOME / source) else self._machine
        machine.get(source, target, max_bytes)

    def checkpoint(self) -> Checkpoint:
        """Refuse."""
        self._refuse()

    def branch(self, n: int) -> list[Sandbox]:
        """Refuse."""
        self._refuse()

    def seal(self, *, timeout_s: float) -> FinalState:
        """Refuse."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        self._running()
        raise SandboxError(f"{self.facts.id}: only examines a final state: examine that again instead")


def remove(place: Path) -> None:
    """Remove a file, a link or a folder with all in it, if there is one."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
