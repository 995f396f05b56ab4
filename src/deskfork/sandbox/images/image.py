"""The images that templates are made from: the guest's disk, and the root filesystem of QEMU's container."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError, InfraError
from deskfork.sandbox.images.guest import DEFAULT_MIRROR, PROGRAMS, GuestStages, bootstrap
from deskfork.sandbox.images.host import require_programs, require_root, require_space
from deskfork.sandbox.images.keys import key_of
from deskfork.sandbox.images.seal import Seal, damage
from deskfork.sandbox.images.store import ImageManifest, Kind, manifests, publish
from deskfork.sandbox.images.workshop import Progress, Stage, Workshop

GUEST_BUILD_GIB = 11.0
"""Four artifacts of 1.4, 0.4, 0.6 and 2.5 GiB, and the root filesystem while the disk is made."""
QEMU_BUILD_GIB = 1.0
GUEST_PACKAGE = Path(__file__).resolve().parents[3] / "deskfork_guest"


@dataclass(frozen=True)
class GuestImage:
    """A bootable guest: disk.raw, vmlinuz and initrd.img in `directory`, world-readable, never written to."""

    digest: str
    directory: Path


@dataclass(frozen=True)
class QemuRootfs:
    """The root filesystem of the container that QEMU runs in, as a tar for `docker import`."""

    path: Path
    key: str
    """Hash of its contents."""


class ImageSummary(StrictModel):
    """One line of a listing."""

    kind: Kind
    digest: str
    directory: Path
    built_at: datetime
    disk_mib: float
    """What it takes on the disk."""
    is_current: bool
    """Whether it is what today's recipe would build."""


def build_guest_image(
    cache_dir: Path,
    recipe: Path,
    on_progress: Callable[[Progress], None],
    *,
    mirror: str = DEFAULT_MIRROR,
    is_forced: bool = False,
) -> GuestImage:
    """Build the guest image, going on from the first stage that is not in the cache; do nothing if it is there.

    Args:
        cache_dir: deskfork's cache.
        recipe: sandbox_images/guest.
        on_progress: Told about every line of output.
        mirror: URL of a Debian mirror; its security archive is expected at the same URL with `-security` appended.
        is_forced: Whether to build all of it again.

    Raises:
        ConfigError: Not run by root, or the host lacks programs, Python 3.11 or disk space.
        InfraError: A stage failed.
    """
    plan = GuestStages(recipe, GUEST_PACKAGE, mirror)
    manifest, directory = _build(cache_dir, "guest", plan.all(), GUEST_BUILD_GIB, on_progress, is_forced=is_forced)
    return GuestImage(manifest.digest, directory)


def build_qemu_rootfs(
    cache_dir: Path,
    recipe: Path,
    on_progress: Callable[[Progress], None],
    *,
    mirror: str = DEFAULT_MIRROR,
    is_forced: bool = False,
) -> QemuRootfs:
    """Build the root filesystem of QEMU's container; do nothing if it is there.

    Args:
        cache_dir: deskfork's cache.
        recipe: sandbox_images/qemu.
        on_progress: Told about every line of output.
        mirror: As for `build_guest_image`.
        is_forced: Whether to build it again.

    Raises:
        ConfigError: Not run by root, or the host lacks programs or disk space.
        InfraError: The build failed.
    """
    stages = [_qemu_stage(recipe, mirror)]
    manifest, directory = _build(cache_dir, "qemu", stages, QEMU_BUILD_GIB, on_progress, is_forced=is_forced)
    return QemuRootfs(directory / "rootfs.tar", manifest.digest)


def find_guest_image(cache_dir: Path, recipe: Path) -> GuestImage:
    """Return the image that `recipe` built.

    Raises:
        ConfigError: It was not built, or its files are damaged.
    """
    manifest, directory = _find(cache_dir, "guest", GuestStages(recipe, GUEST_PACKAGE).disk.key)
    return GuestImage(manifest.digest, directory)


def find_qemu_rootfs(cache_dir: Path, recipe: Path) -> QemuRootfs:
    """Return the root filesystem that `recipe` built.

    Raises:
        ConfigError: It was not built, or its file is damaged.
    """
    manifest, directory = _find(cache_dir, "qemu", _qemu_stage(recipe, DEFAULT_MIRROR).key)
    return QemuRootfs(directory / "rootfs.tar", manifest.digest)


def list_images(cache_dir: Path, *, guest_recipe: Path, qemu_recipe: Path) -> list[ImageSummary]:
    """Return all images in the cache, newest first."""
    wanted = {
        "guest": GuestStages(guest_recipe, GUEST_PACKAGE).disk.key,
        "qemu": _qemu_stage(qemu_recipe, DEFAULT_MIRROR).key,
    }
    return [
        ImageSummary(
            kind=manifest.kind,
            digest=manifest.digest,
            directory=directory,
            built_at=manifest.built_at,
            disk_mib=sum(path.stat().st_blocks for path in directory.iterdir()) * 512 / 2**20,
            is_current=manifest.key == wanted[manifest.kind],
        )
        for manifest, directory in manifests(cache_dir)
    ]


def _qemu_stage(recipe: Path, mirror: str) -> Stage:
    def make(workshop: Workshop, result: Path) -> None:
        bootstrap(workshop, recipe, result / "rootfs.tar", mirror=mirror, backports=True)

    inputs = [(recipe / name).read_bytes() for name in ("packages.txt", "dpkg-excludes.txt", "backports.pref")]
    return Stage("qemu", key_of("qemu 1", *inputs), make, weight_s=50, timeout_s=1800)


def _build(
    cache_dir: Path,
    kind: Kind,
    stages: list[Stage],
    needed_gib: float,
    on_progress: Callable[[Progress], None],
    *,
    is_forced: bool,
) -> tuple[ImageManifest, Path]:
    """Build the image whose last stage is the last of `stages`, unless it is there undamaged."""
    workshop = Workshop(cache_dir, on_progress)
    key = stages[-1].key
    if not is_forced and (found := _existing(cache_dir, kind, key, workshop)):
        return found
    require_root()
    require_programs(PROGRAMS)
    with workshop.lock():
        # Whoever held the lock may have built just this.
        if not is_forced and (found := _existing(cache_dir, kind, key, workshop)):
            return found
        if is_forced:
            workshop.discard(stages)
        require_space(cache_dir, needed_gib)
        try:
            workshop.ensure(stages)
            made = publish(cache_dir, kind, key, workshop.artifact(stages[-1]))
        except OSError as exc:
            raise InfraError(f"{kind} image: {exc}") from exc
        workshop.say(f"built {made[1]}")
        return made


def _existing(cache_dir: Path, kind: Kind, key: str, workshop: Workshop) -> tuple[ImageManifest, Path] | None:
    """Return the image with that key if every byte of it is what it was; remove damaged ones."""
    for manifest, directory in manifests(cache_dir):
        if (manifest.kind, manifest.key) == (kind, key):
            what = damage(directory, Seal(files=manifest.files), check_contents=True)
            if what is None:
                workshop.say(f"{kind} image is there: {directory}")
                return manifest, directory
            workshop.say(f"{what}: building the image again")
            require_root()
            shutil.rmtree(directory)
    return None


def _find(cache_dir: Path, kind: Kind, key: str) -> tuple[ImageManifest, Path]:
    for manifest, directory in manifests(cache_dir):
        if (manifest.kind, manifest.key) == (kind, key):
            if what := damage(directory, Seal(files=manifest.files), check_contents=False):
                raise ConfigError(f"the {kind} image is damaged ({what}): run `deskfork image build`")
            return manifest, directory
    raise ConfigError(f"the {kind} image is not built, or its recipe has changed since: run `deskfork image build`")
