"""Tells whether a machine died by what an agent's own cells did."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from PIL.Image import Image

from deskfork.agent.prelude import PRELUDE
from deskfork.core.errors import HostDiskFull, InfraError
from deskfork.core.types import AccessibilityTree, CellResult, CommandResult, DesktopState
from deskfork.sandbox.base import MAX_FETCH_BYTES, Sandbox


class WatchedGuest:
    """A guest as an agent gets it: the sandbox itself, with an eye on the agent's cells."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._has_run_cell = False
        self._failed_in_cell = False
        self._host_failed = False

    def is_lost(self) -> bool:
        """Whether a cell of the agent took the kernel or the way to it along, or the machine died since the first."""
        if self._host_failed:
            return False
        return self._failed_in_cell or (self._has_run_cell and not self._sandbox.is_alive())

    def run_cell(self, code: str, *, timeout_s: float) -> CellResult:
        """Run a cell; all but our own prelude are the agent's."""
        if code == PRELUDE:
            return self._sandbox.run_cell(code, timeout_s=timeout_s)
        self._has_run_cell = True
        try:
            return self._sandbox.run_cell(code, timeout_s=timeout_s)
        except HostDiskFull:
            self._host_failed = True
            raise
        except InfraError:
            self._failed_in_cell = True
            raise

    def exec(
        self,
        argv: list[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: PurePosixPath | None = None,
        as_root: bool = False,
        timeout_s: float,
    ) -> CommandResult:
        """Run a program, as the sandbox does."""
        return self._sandbox.exec(argv, env=env, cwd=cwd, as_root=as_root, timeout_s=timeout_s)

    def put(self, source: Path | bytes, target: PurePosixPath, *, timeout_s: float = 60.0) -> None:
        """Copy into the guest, as the sandbox does."""
        self._sandbox.put(source, target, timeout_s=timeout_s)

    def get(
        self, source: PurePosixPath, target: Path, *, max_bytes: int = MAX_FETCH_BYTES, timeout_s: float = 60.0
    ) -> None:
        """Copy out of the guest, as the sandbox does."""
        self._sandbox.get(source, target, max_bytes=max_bytes, timeout_s=timeout_s)

    def screenshot(self) -> Image:
        """Return the screen, as the sandbox does."""
        return self._sandbox.screenshot()

    def desktop(self) -> DesktopState:
        """Ask the observer, as the sandbox does."""
        return self._sandbox.desktop()

    def accessibility(self) -> AccessibilityTree:
        """Ask the guest's applications, as the sandbox does."""
        return self._sandbox.accessibility()
