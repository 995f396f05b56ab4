"""The folder of templates: room for one more, and putting it there in one step."""

import os
from pathlib import Path

from pydantic import ValidationError

from deskfork.core.errors import SandboxError
from deskfork.sandbox.frozen.files import remove_folder
from deskfork.sandbox.frozen.frozen import MANIFEST_NAME
from deskfork.sandbox.frozen.manifest import BakedFrom, FrozenManifest
from deskfork.sandbox.live import live_records
from deskfork.sandbox.machine import MachineSpec
from deskfork.sandbox.templates.template import BAKED_MARK, templates_dir
from deskfork.sandbox.templates.use import is_used, retire


def partial_directory(target: Path, sandbox_id: str) -> Path:
    """Return where a template is put together; by the id it is known whether whoever does so lives."""
    return target.parent / f".{target.name}.{sandbox_id}"


def require_space(directory: Path, spec: MachineSpec) -> None:
    """Refuse to make a template where it may not fit.

    Raises:
        SandboxError: Too little is free.
    """
    status = os.statvfs(directory)
    free_mib = status.f_bavail * status.f_frsize / 2**20
    needed_mib = spec.memory_mib + 1024
    if free_mib < needed_mib:
        raise SandboxError(
            f"{directory}: a template needs {needed_mib / 1024:.1f} GiB, {free_mib / 1024:.1f} GiB are free: free some "
            "(`deskfork template prune` removes what is not needed), or set DESKFORK_CACHE to a folder on a larger disk"
        )


def require_unused(target: Path) -> None:
    """Refuse to replace a template under those that use it.

    Raises:
        SandboxError: Somebody does.
    """
    if is_used(target):
        raise SandboxError(_in_use(target))


def store(partial: Path, target: Path) -> None:
    """Give a finished template its name, in the place of one that is there.

    Raises:
        SandboxError: That one is used; the new one is removed.
    """
    try:
        if not retire(target):
            raise SandboxError(_in_use(target))
        partial.rename(target)
    except OSError as error:
        # Another process has stored the same meanwhile.
        raise SandboxError(f"template in {target}: it could not be stored: {error}; try again") from error
    finally:
        remove_folder(partial)


def baked_over(directory: Path) -> dict[Path, BakedFrom]:
    """Return the folders of what was baked over the template in a folder, and over those that lay there before."""
    found = {}
    for child in directory.parent.glob(f"*{BAKED_MARK}*"):
        try:
            baked = FrozenManifest.model_validate_json((child / MANIFEST_NAME).read_bytes()).baked
        except (OSError, ValidationError):
            continue
        if baked is not None and baked.parent == directory.name and not child.name.startswith("."):
            found[child] = baked
    return found


def retire_outdated(directory: Path, digest: str) -> list[str]:
    """Remove what was baked over a template that lay in a folder before the one of that digest.

    Returns:
        The tasks whose baked templates were removed.
    """
    outdated = {child: baked for child, baked in baked_over(directory).items() if baked.parent_digest != digest}
    return sorted(baked.task for child, baked in outdated.items() if retire(child))


def remove_partial(cache_dir: Path) -> list[str]:
    """Remove the templates that killed processes left half made or half removed; return the folders' names."""
    # Looked for first: whoever makes one has its sandbox before.
    found = [path for path in templates_dir(cache_dir).glob(".*") if path.is_dir()]
    alive = {record.id for record in live_records(cache_dir)}
    left = [path for path in found if path.name.rpartition(".")[2] not in alive]
    for path in left:
        remove_folder(path)
    return [path.name for path in left]


def _in_use(target: Path) -> str:
    return (
        f"template in {target}: live sandboxes read from it, so it cannot be replaced: end them first "
        "(`deskfork sandbox list` names them)"
    )
