"""The `fake` provider: no VM, no isolation, only host processes that keep the promises of a sandbox.

For tests and dry runs of trusted code. Anything a cell or program does, it does to this machine as the current user.
Guest paths such as /home/user/Desktop/x are mapped to a temporary folder in `put`, `get`, `cwd` and where a program's
whole argument is one; inside cells, scripts and shell lines they do not exist: use relative paths or `Path.home()`.
There is no display, no observer, no network fence; `as_root` gains nothing; cells know no IPython magics and no
top-level await.
"""

import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from deskfork.core.errors import ConfigError, SandboxError
from deskfork.sandbox.base import Sandbox, SandboxFacts, TemplateFacts
from deskfork.sandbox.fake.examined import ExaminedFake
from deskfork.sandbox.fake.faults import FakeFaults
from deskfork.sandbox.fake.kernel import kill_marked
from deskfork.sandbox.fake.machine import locked
from deskfork.sandbox.fake.sandbox import FAKE_IMAGE, FOLDER_PREFIX, OWNER_LOCK, FakeSandbox
from deskfork.sandbox.final.state import FinalState
from deskfork.sandbox.templates.baked import Baked, BakeOptions

_OPENED = {"desktop": frozenset[str](), "jupyter": frozenset({"jupyterlab", "browser"})}

_Fake = TypeVar("_Fake", bound=FakeSandbox)


class FakeProvider:
    """Opens fake sandboxes from the templates `desktop` and `jupyter`."""

    def __init__(
        self,
        *,
        parent: Path | None = None,
        size_px: tuple[int, int] = (1280, 800),
        faults: FakeFaults | None = None,
    ) -> None:
        """Remember the settings; nothing is made yet.

        Args:
            parent: Where sandbox folders are made, the system's temporary folder by default.
            size_px: Width and height of the screen that is drawn.
            faults: What shall go wrong.
        """
        self._parent = parent or Path(tempfile.gettempdir())
        self._size_px = size_px
        self._faults = faults or FakeFaults()
        self._forks = 0
        self._opened = 0
        self._examined = 0
        self._open: list[FakeSandbox] = []
        self._baked: dict[tuple[str, str, bool], FakeSandbox] = {}

    @property
    def name(self) -> str:
        """`fake`."""
        return "fake"

    def fork(self, template: str, *, network: bool = False, baked: str = "") -> FakeSandbox:
        """Start an empty sandbox, or a copy of a baked one; its programs share the host's network in any case."""
        facts = self._facts_of(template, network)
        self._forks += 1
        if self._forks <= self._faults.failing_forks:
            raise SandboxError(f"fork {self._forks} of {template!r} did not come up")
        if found := self._baked.get((template, baked, network)):
            return self.open(found.facts, origin=found)
        return self.open(facts, origin=None)

    def bake(
        self, template: str, key: str, prepare: Callable[[Sandbox], None], *, task: str, options: BakeOptions
    ) -> Baked:
        """Keep a prepared sandbox, for as long as the provider is open, as what forks are copies of.

        As with a checkpoint, programs that still run are not part of it.
        """
        del task
        place = (template, key, options.network)
        digest = f"fake-{template}-{key}"
        if is_new := place not in self._baked or options.force:
            with self.fork(template, network=options.network) as sandbox:
                options.on_progress("setting up")
                prepare(sandbox)
                kept = self.open(replace(sandbox.facts, baked=key, template_digest=digest), origin=sandbox)
            if earlier := self._baked.get(place):
                earlier.close()
            self._baked[place] = kept
        return Baked(template, key, digest, is_new, form="full", disk_mib=0.0, phases_s={})

    def open(self, facts: SandboxFacts, *, origin: FakeSandbox | None) -> FakeSandbox:
        """Start a sandbox with these facts and an id of its own, as a copy of `origin` if there is one."""
        self._opened += 1
        dying = self._faults.dying_sandboxes
        faults = self._faults if dying is None or self._opened <= dying else FakeFaults()
        named = replace(facts, id=f"fake-{secrets.token_hex(4)}")
        return self._started(FakeSandbox(self, named, self._parent, faults), origin=origin)

    def _started(self, sandbox: _Fake, *, origin: FakeSandbox | None) -> _Fake:
        self._open.append(sandbox)
        with ExitStack() as undo:
            undo.callback(sandbox.close)
            sandbox.start(origin)
            undo.pop_all()
        return sandbox

    def _facts_of(self, template: str, network: bool) -> SandboxFacts:
        digest = self.describe(template).digest
        width, height = self._size_px
        name = f"fake-{secrets.token_hex(4)}"
        return SandboxFacts(name, "fake", template, digest, "none", width, height, _OPENED[template], network)

    def examine(self, state: FinalState, *, network: bool = False) -> Sandbox:
        """Start a sandbox with the home and the temporary files of a sealed one."""
        if state.kind != "folder":
            raise ConfigError(f"{state.disk}: is the state of a real machine, which the fake cannot examine")
        state.require_readable(FAKE_IMAGE, self._parent)
        self._examined += 1
        if self._examined <= self._faults.failing_examinations:
            raise SandboxError(f"examination {self._examined} did not come up")
        facts = self._facts_of("desktop", network)
        return self._started(ExaminedFake(self, facts, self._parent, state), origin=None)

    def describe(self, template: str) -> TemplateFacts:
        """Return the facts of `desktop` or `jupyter`, which do not depend on anything."""
        if template not in _OPENED:
            raise ConfigError(f"the fake provider has no template {template!r}; it has {', '.join(_OPENED)}")
        return TemplateFacts(template, f"fake-{template}", "none", "none", "none")

    def forget(self, sandbox: FakeSandbox) -> None:
        """Take a closed sandbox off the list of open ones."""
        if sandbox in self._open:
            self._open.remove(sandbox)

    def close(self) -> None:
        """Close every sandbox that is still open."""
        with ExitStack() as ending:
            for sandbox in list(self._open):
                ending.callback(sandbox.close)


def prune_fakes(parent: Path | None = None) -> list[Path]:
    """End the programs of fake sandboxes whose owner has died, remove their folders, and return those."""
    folders = (parent or Path(tempfile.gettempdir())).glob(f"{FOLDER_PREFIX}*")
    removed = []
    for folder in folders:
        try:
            lock = locked(folder / OWNER_LOCK, create=False)
        except OSError:  # its owner lives, or has not locked it yet
            continue
        with lock:
            if sandbox_id := lock.read():
                kill_marked(sandbox_id)
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder)
    return removed
