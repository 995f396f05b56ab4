"""What a sealed machine leaves: its disk, and the note of what that disk needs to be read again."""

import shutil
import subprocess
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from deskfork.core.atomic import write_atomic
from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError, SandboxError
from deskfork.sandbox.frozen.files import copy_sparse
from deskfork.sandbox.frozen.frozen import Frozen, read_frozen
from deskfork.sandbox.frozen.overlays import backing_name

FINAL_NAME = "final-state.json"
_DISK_NAMES = {"disk": "disk.qcow2", "folder": "disk"}
FLATTEN_TIMEOUT_S = 600.0


class Backing(StrictModel):
    """A folder of the cache that a final disk reads from."""

    directory: Path
    digest: str
    """Of the template, or of the image, that lay there when the machine was sealed."""
    disk_format: Literal["qcow2", "raw"] = "qcow2"
    is_checkpoint: bool = False
    """Whether it ends with the sandbox, rather than staying in the cache."""

    @property
    def disk(self) -> Path:
        """What lies in the folder."""
        return self.directory / ("disk.raw" if self.disk_format == "raw" else "disk.qcow2")


class FinalState(StrictModel):
    """The disk of a sealed machine: what is on it does not change any more, however often it is examined.

    The disk holds only what differs from its template's. It can be examined for as long as the template and the image
    that it names are in the cache, unchanged and at the same place; whoever examines it is told if they are not.
    """

    kind: Literal["disk", "folder"]
    """`folder` for the fake provider, which has no disks."""
    disk: Path
    """A qcow2 overlay; a folder for the fake."""
    template: str
    image_digest: str
    flushed_by: Literal["sync", "kernel", "nothing"]
    """How the guest's file systems were flushed; `nothing`: the guest let nobody do it, and lost its last seconds."""
    backing: tuple[Backing, ...] = Field(default=())
    """What the disk reads from, nearest first; the image comes last."""

    @property
    def readable(self) -> list[Path]:
        """The folders that whoever reads the disk has to see."""
        return [self.disk.parent, *(backing.directory for backing in self.backing)]

    def keep(self, directory: Path) -> "FinalState":
        """Copy the disk to the host folder `directory`, so that it can be examined after the sandbox has closed.

        Only what was written is copied. What lay between the disk and its template, a checkpoint that ends with the
        sandbox, is merged into the copy.

        Returns:
            The state whose disk is the copy; `load_state(directory)` returns it again.

        Raises:
            SandboxError: It could not be copied.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True)
            kept = self._copy(directory)
            write_atomic(directory / FINAL_NAME, kept.model_dump_json(indent=1))
        except (OSError, shutil.Error, subprocess.SubprocessError) as error:
            raise SandboxError(f"the final disk could not be kept in {directory}: {error}") from error
        return kept

    def require_readable(self, image_digest: str, cache_dir: Path) -> None:
        """Refuse a disk whose template or image is not what it was written on.

        A kept state may come from anywhere, so it is not taken at its word: its disk must read from the cache, and
        from nothing else on this machine.

        Args:
            image_digest: Of the image whose programs are going to examine it.
            cache_dir: Where templates and images lie.

        Raises:
            ConfigError: Which one is missing or another.
        """
        if not self.disk.exists():
            raise ConfigError(f"{self.disk}: the final disk is gone")
        if image_digest != self.image_digest:
            raise ConfigError(
                f"{self.disk}: was written on guest image {self.image_digest[:12]}, and the image here is "
                f"{image_digest[:12]}: it can be examined only with the image that it was written on"
            )
        if self.kind == "disk" and (not self.backing or _backing_of(self.disk) != str(self.backing[0].disk)):
            raise ConfigError(f"{self.disk}: is no disk over what {FINAL_NAME} says")
        for backing in self.backing:
            self._require_unchanged(backing, cache_dir)

    def _require_unchanged(self, backing: Backing, cache_dir: Path) -> None:
        if not backing.directory.is_relative_to(cache_dir) or ".." in backing.directory.parts:
            raise ConfigError(f"{self.disk}: reads from {backing.directory}, which is not in the cache {cache_dir}")
        if not backing.disk.exists():
            raise ConfigError(f"{self.disk}: reads from {backing.disk}, which is gone from the cache")
        if backing.disk_format == "raw" or backing.is_checkpoint:
            return
        try:
            found = read_frozen(backing.directory).manifest.digest
        except SandboxError as error:
            raise ConfigError(f"{self.disk}: reads from a template that is damaged: {error}") from error
        if found != backing.digest:
            raise ConfigError(
                f"{self.disk}: was written on template {backing.digest[:12]}, and {backing.directory} now holds "
                f"{found[:12]}: it cannot be examined any more"
            )

    def _copy(self, directory: Path) -> "FinalState":
        target = directory / _DISK_NAMES[self.kind]
        if self.kind == "folder":
            shutil.copytree(self.disk, target, symlinks=True, ignore=_special_files)
            return self.model_copy(update={"disk": target})
        lasting = tuple(backing for backing in self.backing if not backing.is_checkpoint)
        if len(lasting) == len(self.backing):
            copy_sparse(self.disk, target)
        else:
            base = lasting[0]
            command = ["qemu-img", "convert", "-q", "-f", "qcow2", "-O", "qcow2", "-B", str(base.disk)]
            command += ["-F", base.disk_format, str(self.disk), str(target)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=FLATTEN_TIMEOUT_S, check=False)
            if done.returncode:
                raise OSError(f"qemu-img: {done.stderr.strip()[-500:]}")
        target.chmod(0o600)
        return self.model_copy(update={"disk": target, "backing": lasting})


def load_state(directory: Path) -> FinalState:
    """Read what `FinalState.keep` wrote to `directory`, wherever that folder lies now.

    Raises:
        ConfigError: There is no final state in it.
    """
    try:
        state = FinalState.model_validate_json((directory / FINAL_NAME).read_bytes())
    except (OSError, ValidationError) as error:
        raise ConfigError(f"{directory}: no final state that can be read ({type(error).__name__})") from error
    return state.model_copy(update={"disk": directory / state.disk.name})


def final_disk(disk: Path, frozen: Frozen, flushed_by: Literal["sync", "kernel", "nothing"]) -> FinalState:
    """Describe the disk of a machine that was forked from `frozen` and has ended."""
    backing = []
    origin: Frozen | None = frozen
    while origin is not None:
        backing.append(
            Backing(
                directory=origin.directory,
                digest=origin.manifest.digest,
                # A checkpoint lies where sandboxes lie, the disk's among them.
                is_checkpoint=origin.directory.parent == disk.parent.parent,
            )
        )
        origin = origin.parent
    manifest = frozen.manifest
    image = manifest.image_directory
    backing.append(Backing(directory=image, digest=manifest.image_digest, disk_format="raw"))
    return FinalState(
        kind="disk",
        disk=disk,
        template=manifest.name,
        image_digest=manifest.image_digest,
        flushed_by=flushed_by,
        backing=tuple(backing),
    )


def _backing_of(disk: Path) -> str:
    try:
        return backing_name(disk)
    except OSError as error:
        raise ConfigError(f"{disk}: the final disk cannot be read: {error.strerror}") from error


def _special_files(folder: str, names: list[str]) -> list[str]:
    """Return which entries are neither files nor folders nor links; copying a pipe would wait for its writer."""
    found = [Path(folder, name) for name in names]
    return [path.name for path in found if not (path.is_symlink() or path.is_dir() or path.is_file())]
