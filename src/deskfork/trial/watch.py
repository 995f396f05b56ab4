"""Tells whether a machine died by what an agent's own cells did."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from PIL.Image import Image

from deskfork.agent.prelude import is_our_own
from deskfork.core.errors import HostDiskFull, InfraError
from deskfork.core.types import AccessibilityTree, CellResult, CommandResult, DesktopState
from deskfork.sandbox.base import MAX_FETCH_BYTES, Sandbox


class WatchedGuest:
    """A guest as an agent gets it: the sandbox itself, with an eye on the agent's acts."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._has_acted = False
        self._failed_in_act = False
        self._host_failed = False

    def is_lost(self) -> bool:
        """Whether an act of the agent took the kernel or the way to it along, or the machine died since the first."""
        if self._host_failed:
            return False
        return self._failed_in_act or (self._has_acted and not self._sandbox.is_alive())

    def run_cell(self, code: str, *, timeout_s: float) -> CellResult:
        """Run a cell; all but deskfork's own are the agent's."""
        if is_our_own(code):
            return self._sandbox.run_cell(code, timeout_s=timeout_s)
        with self._watching():
            return self._sandbox.run_cell(code, timeout_s=timeout_s)

    def exec(
        self,
        argv: list[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: PurePosixPath | None = None,
        as_root: bool = False,
        timeout_s: float,
    ) -> CommandResult:
        """Run a command of the agent's: nobody else asks for one while it is at work."""
        with self._watching():
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

    @contextmanager
    def _watching(self) -> Iterator[None]:
        self._has_acted = True
        try:
            yield
        except HostDiskFull:
            self._host_failed = True
            raise
        except InfraError:
            self._failed_in_act = True
            raise
