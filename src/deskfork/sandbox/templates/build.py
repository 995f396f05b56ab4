"""Making a template: boot, open, settle, freeze, store."""

import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from deskfork.core.errors import SandboxError
from deskfork.sandbox.frozen.files import FrozenFile, describe_files, remove_folder
from deskfork.sandbox.frozen.frozen import FROZEN_NAMES, Frozen, read_frozen, write_manifest
from deskfork.sandbox.frozen.overlays import name_from, set_backing
from deskfork.sandbox.images.image import GuestImage
from deskfork.sandbox.launcher import Launcher
from deskfork.sandbox.live import claim
from deskfork.sandbox.running import create_overlay
from deskfork.sandbox.templates.boot import TemplateBoot
from deskfork.sandbox.templates.store import partial_directory, require_space, require_unused, retire_outdated, store
from deskfork.sandbox.templates.template import Recipe, machine_spec, template_directory


def build_template(
    cache_dir: Path, recipe: Recipe, image: GuestImage, launcher: Launcher, on_progress: Callable[[str], None]
) -> Frozen:
    """Boot, open, settle, freeze; replaces a template of the same ingredients, and what was baked over that.

    Raises:
        BootTimeout: The guest's services did not all answer.
        SandboxError: Live sandboxes use the template that is there, or QEMU or the guest failed on the way; nothing is
            left behind.
    """
    target = template_directory(cache_dir, recipe, image, launcher)
    target.parent.mkdir(parents=True, exist_ok=True)
    require_unused(target)
    require_space(target.parent, machine_spec(launcher))
    with ExitStack() as undo:
        try:
            own = claim(cache_dir, provider=launcher.name, kind="template build", template=recipe.name)
        except OSError as error:
            raise SandboxError(f"template {recipe.name}: no folder to build it in: {error}") from error
        undo.callback(own.release)
        manifest = TemplateBoot(recipe, image, launcher, own, on_progress).freeze()
        on_progress("hashing and storing")
        set_backing(own.directory / "disk.qcow2", name_from(target, image.directory / "disk.raw"), "raw")
        disk_bytes = (image.directory / "disk.raw").stat().st_size
        create_overlay(own.directory / "overlay.qcow2", target / "disk.qcow2", "qcow2", disk_bytes)
        # The empty overlay names the template's folder, which is no part of its contents.
        names = FROZEN_NAMES["own"]
        files = describe_files(own.directory, names, hashed=[name for name in names if name != "overlay.qcow2"])
        partial = partial_directory(target, own.record.id)
        partial.mkdir(mode=0o700)
        undo.callback(remove_folder, partial)
        for name in (*files, "id_ed25519"):
            (own.directory / name).rename(partial / name)
        write_manifest(partial, manifest.model_copy(update={"files": files, "digest": _digest(files)}))
        store(partial, target)
    frozen = read_frozen(target)
    if removed := retire_outdated(target, frozen.manifest.digest):
        on_progress(f"removed what was baked over the one before: {', '.join(removed)}")
    return frozen


def time_cold_boot(cache_dir: Path, recipe: Recipe, image: GuestImage, launcher: Launcher) -> float:
    """Boot and open as `build_template` does, freeze nothing; return the seconds until a cell had answered.

    Raises:
        BootTimeout: The guest's services did not all answer.
        SandboxError: QEMU or the guest failed on the way.
    """
    own = claim(cache_dir, provider=launcher.name, kind="template build", template=recipe.name)
    try:
        return TemplateBoot(recipe, image, launcher, own, lambda line: None).time_cold_boot()
    finally:
        own.release()


def _digest(files: dict[str, FrozenFile]) -> str:
    content = "\n".join(f"{name} {file.sha256}" for name, file in sorted(files.items()))
    return hashlib.sha256(content.encode()).hexdigest()
