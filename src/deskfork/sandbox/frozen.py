"""A frozen machine: memory, devices and disk in one folder, read-only, from which any number of forks go on."""

import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import Field, ValidationError

from deskfork.core.atomic import write_atomic
from deskfork.core.config import StrictModel
from deskfork.core.errors import SandboxError
from deskfork.sandbox.machine import MachineSpec

MANIFEST_NAME = "manifest.json"
FROZEN_NAMES = ("memory", "state", "disk.qcow2", "overlay.qcow2")
"""The files of a template."""


class FrozenFile(StrictModel):
    """One file of a frozen machine."""

    size: int
    sha256: str = ""
    """Empty for a checkpoint's memory and disk, which live no longer than the process that made them."""


class FrozenManifest(StrictModel):
    """What a fork needs to know of the machine that it goes on from."""

    name: str
    digest: str
    """Of the contents; two templates with the same digest are the same instant."""
    image_digest: str
    image_directory: Path
    """Where the base image's disk, kernel and initrd lie."""
    qemu_version: str
    machine: MachineSpec
    opened: frozenset[str] = frozenset()
    token: str
    """What the guest's services still want until a fork gave them its own."""
    kernel_id: str
    ssh_host_key: str
    created_at: datetime
    build_s: dict[str, float] = Field(default_factory=dict)
    """Seconds by phase of the making: boot, open, settle, freeze."""
    files: dict[str, FrozenFile]
    memory_offset: int = 0
    """Where in its file memory begins: not 0 for a checkpoint, whose one file holds the devices too."""


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
            directory: Holds memory, state, disk.qcow2 and overlay.qcow2.
            manifest: Its description.
            private_key: The SSH key that its guests accept.
            parent: What its disk reads from, for a checkpoint.
            on_unused: Called when the last user has released it.
        """
        self.directory = directory
        self.manifest = manifest
        self.private_key = private_key
        self.parent = parent
        self._on_unused = on_unused
        self._users = 0
        self._lock = threading.Lock()

    @property
    def memory(self) -> Path:
        """Guest memory, byte for byte."""
        return self.directory / "memory"

    @property
    def state(self) -> Path:
        """Device state, as QEMU's migration wrote it."""
        return self.memory if self.manifest.memory_offset else self.directory / "state"

    @property
    def disk(self) -> Path:
        """The frozen disk: a qcow2 over the base image, or over an earlier frozen disk."""
        return self.directory / "disk.qcow2"

    @property
    def empty_overlay(self) -> Path:
        """An empty qcow2 over `disk`; copying it is making a fork's disk."""
        return self.directory / "overlay.qcow2"

    def retain(self) -> None:
        """Count one more user."""
        with self._lock:
            self._users += 1

    def release(self) -> None:
        """Count one user less; the last one gone removes what is not a template."""
        with self._lock:
            self._users -= 1
            is_unused = self._users == 0
        if is_unused and self._on_unused is not None:
            self._on_unused()

    def lineage(self) -> list[Path]:
        """Return the folders that a fork's QEMU reads: this one, those that its disk goes back to, and the image's."""
        return [self.directory, *(self.parent.lineage() if self.parent else [self.manifest.image_directory])]

    def check(self) -> None:
        """Look for damage to a template that can be seen without reading gigabytes: sizes, and the device state's hash.

        Raises:
            SandboxError: A file is missing, or is not what was frozen.
        """
        if missing := set(FROZEN_NAMES) - self.manifest.files.keys():
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
        if file_sha256(self.state) != self.manifest.files["state"].sha256:
            raise SandboxError(f"{self._label}: the device state does not match its hash: {self._way_out}")

    @property
    def _label(self) -> str:
        return f"template {self.manifest.name} in {self.directory}"

    @property
    def _way_out(self) -> str:
        return f"rebuild it with `deskfork template build {self.manifest.name} --force`"


def read_frozen(directory: Path) -> Frozen:
    """Open a template's folder.

    Raises:
        SandboxError: It has no valid manifest.
    """
    try:
        manifest = FrozenManifest.model_validate_json((directory / MANIFEST_NAME).read_bytes())
    except (OSError, ValidationError) as error:
        raise SandboxError(
            f"template in {directory}: its manifest cannot be read ({type(error).__name__}): "
            "remove the folder and run `deskfork template build`"
        ) from error
    return Frozen(directory, manifest, private_key=directory / "id_ed25519")


def write_manifest(directory: Path, manifest: FrozenManifest) -> None:
    """Write the manifest and make everything in the folder read-only."""
    write_atomic(directory / MANIFEST_NAME, manifest.model_dump_json(indent=1), mode=0o400)
    for path in directory.iterdir():
        path.chmod(0o400)


def describe_files(directory: Path, names: Sequence[str], *, hashed: Collection[str]) -> dict[str, FrozenFile]:
    """Return size, and for the names in `hashed` the hash, of files of a machine that has just been frozen."""
    return {
        name: FrozenFile(
            size=(directory / name).stat().st_size, sha256=file_sha256(directory / name) if name in hashed else ""
        )
        for name in names
    }


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a file without writing its holes.

    Raises:
        OSError: No space is left, or `source` cannot be read.
    """
    # Unbuffered: the search for holes moves the place from which a buffer would be filled.
    with source.open("rb", buffering=0) as reader, target.open("wb") as writer:
        size = os.fstat(reader.fileno()).st_size
        os.ftruncate(writer.fileno(), size)
        start = 0
        while start < size:
            try:
                start = os.lseek(reader.fileno(), start, os.SEEK_DATA)
            except OSError:
                break
            end = os.lseek(reader.fileno(), start, os.SEEK_HOLE)
            reader.seek(start)
            writer.seek(start)
            while start < end:
                block = reader.read(min(1 << 20, end - start))
                writer.write(block)
                start += len(block)


def remove_folder(directory: Path) -> None:
    """Remove a frozen machine's folder."""
    shutil.rmtree(directory, ignore_errors=True)
