"""The templates on disk, booted and baked, usable or not."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from deskfork.core.config import StrictModel
from deskfork.core.errors import DeskforkError
from deskfork.sandbox.frozen.files import occupied_bytes
from deskfork.sandbox.frozen.frozen import MANIFEST_NAME, Frozen, read_frozen
from deskfork.sandbox.frozen.manifest import FrozenManifest
from deskfork.sandbox.templates.template import BAKED_MARK, templates_dir
from deskfork.sandbox.templates.use import is_used


class TemplateSummary(StrictModel):
    """One template on disk, for listings."""

    name: str
    kind: Literal["booted", "baked"]
    task: str = ""
    """With which a baked one was made; others with the same set-up share it."""
    key: str = ""
    """Of a baked one's set-up."""
    parent: str = ""
    """Name of the folder of the template that a baked one lies over."""
    memory: Literal["own", "full", "delta", ""] = ""
    """How its memory is kept; a delta is what differs from the parent's."""
    directory: Path
    digest: str = ""
    qemu_version: str = ""
    acceleration: str = ""
    created_at: datetime
    last_used_at: datetime
    is_used: bool
    """Whether a live sandbox reads from it."""
    disk_mib: float
    """What it occupies."""
    problem: str = ""
    """Why it cannot be used; empty when it can."""


def list_templates(cache_dir: Path) -> list[TemplateSummary]:
    """Return every template on disk, by name, the baked ones after their parents."""
    root = templates_dir(cache_dir)
    parents: dict[str, Frozen | DeskforkError] = {}
    found = []
    for directory in sorted(root.iterdir(), key=_order) if root.is_dir() else []:
        if directory.name.startswith(".") or not directory.is_dir():
            continue
        try:
            found.append(_summary(directory, parents))
        except FileNotFoundError:
            # Removed while we looked.
            continue
    return found


def _order(directory: Path) -> tuple[bool, str]:
    return BAKED_MARK in directory.name, directory.name


def _summary(directory: Path, checked: dict[str, Frozen | DeskforkError]) -> TemplateSummary:
    manifest, problem = None, ""
    try:
        manifest = FrozenManifest.model_validate_json((directory / MANIFEST_NAME).read_bytes())
    except (OSError, ValueError):
        problem = "its manifest cannot be read"
    try:
        frozen = _opened(directory, manifest, checked)
        frozen.check()
        checked[directory.name] = frozen
    except DeskforkError as error:
        checked[directory.name] = error
        problem = str(error)
    changed_at = datetime.fromtimestamp(directory.stat().st_mtime, UTC)
    baked = manifest.baked if manifest else None
    return TemplateSummary(
        name=manifest.name if manifest else directory.name.rpartition("-")[0],
        kind="baked" if BAKED_MARK in directory.name else "booted",
        task=baked.task if baked else "",
        key=baked.key if baked else "",
        parent=baked.parent if baked else "",
        memory=manifest.memory_form if manifest else "",
        directory=directory,
        digest=manifest.digest if manifest else "",
        qemu_version=manifest.qemu_version if manifest else "",
        acceleration=manifest.machine.acceleration if manifest else "",
        created_at=manifest.created_at if manifest else changed_at,
        last_used_at=changed_at,
        is_used=is_used(directory),
        disk_mib=occupied_bytes(directory) / 2**20,
        problem=problem,
    )


def _opened(directory: Path, manifest: FrozenManifest | None, checked: dict[str, Frozen | DeskforkError]) -> Frozen:
    parent = checked.get(manifest.baked.parent) if manifest and manifest.baked else None
    if isinstance(parent, DeskforkError):
        raise parent
    return read_frozen(directory, parent)
