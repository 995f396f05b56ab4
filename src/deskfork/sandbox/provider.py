"""The provider of real machines: forks templates through whichever launcher it was given."""

import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from deskfork.core.errors import ConfigError, SandboxError
from deskfork.sandbox.base import Sandbox, TemplateFacts
from deskfork.sandbox.final.examined import ExaminedSandbox
from deskfork.sandbox.final.state import FinalState
from deskfork.sandbox.frozen.frozen import Frozen
from deskfork.sandbox.images.image import GuestImage, find_guest_image
from deskfork.sandbox.launcher import Launcher
from deskfork.sandbox.live import Claim, claim
from deskfork.sandbox.reaper import Reaper
from deskfork.sandbox.templates.bake import bake, described
from deskfork.sandbox.templates.baked import Baked, BakeOptions
from deskfork.sandbox.templates.build import build_template, time_cold_boot
from deskfork.sandbox.templates.template import baked_directory, find_baked, find_template, recipe_named
from deskfork.sandbox.vm import VmSandbox

EXAMINING_TEMPLATE = "desktop"
"""Of which final states are examined: it has nothing open that could look at files by itself."""
_Opened = TypeVar("_Opened", bound=VmSandbox)


class VmProvider:
    """Opens QEMU sandboxes. What it opened ends with it, and with its process however that dies."""

    def __init__(self, launcher: Launcher, cache_dir: Path, guest_recipe: Path, *, is_holding: bool = False) -> None:
        """Start the process that cleans up after us.

        Args:
            launcher: Starts QEMU.
            cache_dir: deskfork's cache.
            guest_recipe: sandbox_images/guest, by whose content the image is found.
            is_holding: Whether this process only holds sandboxes for others (`sandbox start`).
        """
        self._launcher = launcher
        self._cache_dir = cache_dir
        self._guest_recipe = guest_recipe
        self._is_holding = is_holding
        self._templates: dict[str, Frozen] = {}
        self._open: set[VmSandbox] = set()
        self._lock = threading.Lock()
        self._reaper = Reaper(cache_dir)

    @property
    def name(self) -> str:
        """`docker` or `qemu`."""
        return self._launcher.name

    @property
    def launcher(self) -> Launcher:
        """What starts its machines."""
        return self._launcher

    def fork(self, template: str, *, network: bool = False, baked: str = "") -> VmSandbox:
        """Start a sandbox from a template; see `SandboxProvider.fork`."""
        frozen = self._template(template)
        found = self._baked_over(frozen, baked, network) if baked else None
        return self._fork(found or frozen, network)

    def bake(
        self, template: str, key: str, prepare: Callable[[Sandbox], None], *, task: str, options: BakeOptions
    ) -> Baked:
        """Freeze a fork after its set-up; see `SandboxProvider.bake`."""
        parent = self._template(template)
        with suppress(SandboxError):  # a damaged one is baked again
            if not options.force and (found := self._baked_over(parent, key, options.network)):
                return described(found.directory, found.manifest, is_new=False)
        fork = partial(self._fork, parent, options.network)
        return bake(fork, parent, key, prepare, task=task, options=options)

    def examine(self, state: FinalState, *, network: bool = False) -> ExaminedSandbox:
        """Look at a final state with a fresh fork's programs; see `SandboxProvider.examine`."""
        if state.kind != "disk":
            raise ConfigError(f"{state.disk}: is a state of the fake provider, which alone can examine it")
        frozen = self._template(EXAMINING_TEMPLATE)
        state.require_readable(frozen.manifest.image_digest, self._cache_dir)

        def make(own: Claim) -> ExaminedSandbox:
            return ExaminedSandbox(own, self._launcher, frozen, state, on_close=self._forget)

        return self._opened(frozen, network, make)

    def describe(self, template: str) -> TemplateFacts:
        """Return what a fork of `template` would start from; see `SandboxProvider.describe`."""
        manifest = self._template(template).manifest
        return TemplateFacts(
            name=manifest.name,
            digest=manifest.digest,
            image_digest=manifest.image_digest,
            qemu_version=manifest.qemu_version,
            acceleration=manifest.machine.acceleration,
        )

    def build(self, template: str, on_progress: Callable[[str], None]) -> Frozen:
        """Build a template, also if there is one.

        Raises:
            ConfigError: The image is not built, or no recipe has that name.
            SandboxError: The guest did not get there.
        """
        recipe = recipe_named(template)
        frozen = build_template(self._cache_dir, recipe, self.image(), self._launcher, on_progress)
        with self._lock:
            self._templates[template] = frozen
        return frozen

    def time_cold_boot(self, template: str) -> float:
        """Boot to the state of a template without freezing it; return the seconds that took, to compare a fork with.

        Raises:
            ConfigError: The image is not built, or no recipe has that name.
            SandboxError: The guest did not get there.
        """
        return time_cold_boot(self._cache_dir, recipe_named(template), self.image(), self._launcher)

    def image(self) -> GuestImage:
        """Return the guest image that templates are booted from.

        Raises:
            ConfigError: It is not built.
        """
        return find_guest_image(self._cache_dir, self._guest_recipe)

    def close(self) -> None:
        """Close every sandbox that is still open."""
        with ExitStack() as each:
            for sandbox in list(self._open):
                each.callback(sandbox.close)
        # Not reached when one could not be closed: the reaper then tries again at our end.
        self._reaper.dismiss()

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the provider."""
        self.close()

    def _baked_over(self, parent: Frozen, key: str, network: bool) -> Frozen | None:
        place = baked_directory(parent, key, network=network).name
        with self._lock:
            known = self._templates.get(place)
        if known is not None and known.is_there():
            return known
        found = find_baked(parent, key, network=network)
        if found is not None:
            with self._lock:
                self._templates[place] = found
        return found

    def _template(self, name: str) -> Frozen:
        with self._lock:
            if name not in self._templates or not self._templates[name].is_there():
                recipe_named(name)
                self._templates[name] = find_template(self._cache_dir, name, self.image(), self._launcher)
            return self._templates[name]

    def _fork(self, frozen: Frozen, network: bool) -> VmSandbox:
        def make(own: Claim) -> VmSandbox:
            return VmSandbox(own, self._launcher, frozen, on_close=self._forget, fork_from=self._fork)

        return self._opened(frozen, network, make)

    def _opened(self, frozen: Frozen, network: bool, make: Callable[[Claim], _Opened]) -> _Opened:
        frozen.retain()
        with ExitStack() as undo:
            undo.callback(frozen.release)
            try:
                own = claim(
                    self._cache_dir,
                    provider=self._launcher.name,
                    kind="sandbox",
                    template=frozen.manifest.name,
                    network=network,
                    is_held=self._is_holding,
                )
            except OSError as error:
                raise SandboxError(f"no folder for a sandbox in {self._cache_dir}: {error}") from error
            sandbox = make(own)
        with self._lock:
            self._open.add(sandbox)
        return sandbox

    def _forget(self, sandbox: VmSandbox) -> None:
        with self._lock:
            self._open.discard(sandbox)
