"""A frozen machine: memory, devices and disk in one folder, read-only, from which any number of forks go on."""

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from pydantic import ValidationError

from deskfork.core.atomic import write_atomic
from deskfork.core.errors import SandboxError
from deskfork.sandbox.frozen.files import file_sha256
from deskfork.sandbox.frozen.manifest import FrozenManifest, MemoryForm
from deskfork.sandbox.frozen.mapped_ram import state_sha256
from deskfork.sandbox.templates.use import use

MANIFEST_NAME = "manifest.json"
FROZEN_NAMES: dict[MemoryForm, tuple[str, ...]] = {
    "own": ("memory", "state", "disk.qcow2", "overlay.qcow2"),
    "full": ("memory", "disk.qcow2", "overlay.qcow2"),
    "delta": ("delta", "disk.qcow2", "overlay.qcow2"),
}
"""The files of a frozen machine, by the form in which its memory is kept."""
_STATE_NAMES: dict[MemoryForm, str] = {"own": "state", "full": "memory", "delta": "delta"}


class Frozen:
    """A frozen machine on disk, kept for as long as anything goes on from it."""

    def __init__(
        self,
        directory: Path,
        manifest: FrozenManifest,
        *,
        private_key: Path,
        parent: "Frozen | None" = None,
        on_unused: Callable[[], None] | None = None,
    ) -> None:
        """Wrap what lies in `directory`.

        Args:
            directory: Holds the files of its form.
            manifest: Its description.
            private_key: The SSH key that its guests accept.
            parent: What its disk reads from, and its memory in delta form; None for a template that was booted.
            on_unused: Called when the last user has released it; what has it is no template and ends with its users.
        """
        self.directory = directory
        self.manifest = manifest
        self.private_key = private_key
        self.parent = parent
        self._on_unused = on_unused
        self._created = _identity(directory)
        self._users = 0
        self._held = ExitStack()
        self._lock = threading.Lock()

    @property
    def memory(self) -> Path:
        """The file that a fork maps: guest memory byte for byte, or the parent's, of which the state changes pages."""
        if self.parent is not None and self.manifest.memory_form == "delta":
            return self.parent.memory
        return self.directory / "memory"

    @property
    def state(self) -> Path:
        """Device state, as QEMU's migration wrote it."""
        return self.directory / _STATE_NAMES[self.manifest.memory_form]

    @property
    def is_mapped_ram(self) -> bool:
        """Whether the state is a `mapped-ram` file."""
        return self.manifest.memory_form != "own"

    @property
    def disk(self) -> Path:
        """The frozen disk: a qcow2 over the base image, or over an earlier frozen disk."""
        return self.directory / "disk.qcow2"

    @property
    def empty_overlay(self) -> Path:
        """An empty qcow2 over `disk`; copying it is making a fork's disk."""
        return self.directory / "overlay.qcow2"

    def is_there(self) -> bool:
        """Whether its folder is still the one that was opened, neither removed nor replaced."""
        return _identity(self.directory) == self._created

    def retain(self) -> None:
        """Count one more user; the first keeps it, and what it reads from, from being removed.

        Raises:
            SandboxError: It is a template that was just removed or replaced.
        """
        with self._lock:
            if self._users == 0:
                with ExitStack() as held:
                    if self.parent is not None:
                        self.parent.retain()
                        held.callback(self.parent.release)
                    if self._on_unused is not None:
                        held.callback(self._on_unused)
                    else:
                        held.callback(os.close, use(self.directory))
                    self._held = held.pop_all()
            self._users += 1

    def release(self) -> None:
        """Count one user less; the last one gone removes what is not a template."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._held.close()

    def lineage(self) -> list[Path]:
        """Return the folders that a fork's QEMU reads: this one, those that its disk goes back to, and the image's."""
        return [self.directory, *(self.parent.lineage() if self.parent else [self.manifest.image_directory])]

    def check(self) -> None:
        """Look for damage to a template that can be seen without reading gigabytes: sizes, and the state's hash.

        Raises:
            SandboxError: A file is missing, or is not what was frozen.
        """
        form = self.manifest.memory_form
        if missing := set(FROZEN_NAMES[form]) - self.manifest.files.keys():
            raise SandboxError(f"{self._label}: its manifest lacks {', '.join(sorted(missing))}: {self._way_out}")
        for name, expected in self.manifest.files.items():
            path = self.directory / name
            try:
                actual = path.stat().st_size
            except OSError as error:
                raise SandboxError(f"{self._label}: {name} is missing: {self._way_out}") from error
            if actual != expected.size:
                raise SandboxError(
                    f"{self._label}: {name} has {actual} bytes instead of {expected.size}: {self._way_out}"
                )
        if self._state_sha256() != self.manifest.files[_STATE_NAMES[form]].sha256:
            raise SandboxError(f"{self._label}: the device state does not match its hash: {self._way_out}")
        # A booted template's disk is large; a baked one's holds no more than its set-up wrote.
        if self.manifest.baked and file_sha256(self.disk) != self.manifest.files["disk.qcow2"].sha256:
            raise SandboxError(f"{self._label}: the disk does not match its hash: {self._way_out}")

    def _state_sha256(self) -> str:
        if not self.is_mapped_ram:
            return file_sha256(self.state)
        try:
            return state_sha256(self.state, self.manifest.machine.memory_mib << 20)
        except SandboxError as error:
            raise SandboxError(f"{self._label}: {error}: {self._way_out}") from error

    @property
    def _label(self) -> str:
        baked = self.manifest.baked
        of = f"baked template of {baked.task}" if baked else f"template {self.manifest.name}"
        return f"{of} in {self.directory}"

    @property
    def _way_out(self) -> str:
        if baked := self.manifest.baked:
            return f"bake it again with `deskfork template bake --tasks {baked.task} --force`"
        return f"rebuild it with `deskfork template build {self.manifest.name} --force`"


def read_frozen(directory: Path, parent: Frozen | None = None) -> Frozen:
    """Open a template's folder.

    Args:
        directory: The folder.
        parent: What it was baked over, if that is open already.

    Raises:
        SandboxError: It, or what it was baked over, has no valid manifest.
    """
    try:
        manifest = FrozenManifest.model_validate_json((directory / MANIFEST_NAME).read_bytes())
    except (OSError, ValidationError) as error:
        raise SandboxError(
            f"template in {directory}: its manifest cannot be read ({type(error).__name__}): "
            "remove the folder and run `deskfork template build`"
        ) from error
    # The cache may have been moved since: images lie beside templates in it.
    image = directory.parent.parent / manifest.image_directory.parent.name / manifest.image_directory.name
    if image.is_dir():
        manifest = manifest.model_copy(update={"image_directory": image})
    if manifest.baked is None:
        return Frozen(directory, manifest, private_key=directory / "id_ed25519")
    parent = parent or read_frozen(directory.parent / manifest.baked.parent)
    if parent.manifest.digest != manifest.baked.parent_digest:
        raise SandboxError(
            f"baked template of {manifest.baked.task} in {directory}: its template {parent.manifest.name} was built "
            f"again since: bake it again with `deskfork template bake --tasks {manifest.baked.task}`"
        )
    return Frozen(directory, manifest, private_key=parent.private_key, parent=parent)


def write_manifest(directory: Path, manifest: FrozenManifest) -> None:
    """Write the manifest and make everything in the folder read-only."""
    write_atomic(directory / MANIFEST_NAME, manifest.model_dump_json(indent=1), mode=0o400)
    for path in directory.iterdir():
        path.chmod(0o400)


def _identity(directory: Path) -> tuple[int, int] | None:
    # The manifest's: the folder's own time says when it was last used, and a number alone may be given again.
    try:
        status = (directory / MANIFEST_NAME).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
