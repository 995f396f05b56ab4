"""Templates: what kinds there are, and those that were built."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError, DeskforkError, SandboxError
from deskfork.sandbox.frozen import MANIFEST_NAME, Frozen, read_frozen
from deskfork.sandbox.images.image import GuestImage
from deskfork.sandbox.launcher import Launcher
from deskfork.sandbox.machine import MachineSpec

OPEN_TIMEOUT_S = 400.0
_FORMAT = 1
"""Counted up when frozen machines of an older deskfork cannot be forked any more."""


class Recipe(StrictModel):
    """What a template has open when it is frozen."""

    name: str
    opens: tuple[str, ...] = ()
    """A guest program and its arguments, run as the user; it returns when everything is open."""
    opened: frozenset[str] = frozenset()


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(name="desktop"),
        Recipe(
            name="jupyter",
            opens=("/opt/deskfork/bin/open-jupyter", str(int(OPEN_TIMEOUT_S) - 20)),
            opened=frozenset({"jupyterlab", "browser"}),
        ),
    )
}


class TemplateSummary(StrictModel):
    """One template on disk, for listings."""

    name: str
    directory: Path
    digest: str
    qemu_version: str
    acceleration: str
    created_at: datetime
    disk_mib: float
    """What it occupies."""
    problem: str = ""
    """Why it cannot be used; empty when it can."""


def recipe_named(name: str) -> Recipe:
    """Return the recipe of that name.

    Raises:
        ConfigError: There is none.
    """
    try:
        return RECIPES[name]
    except KeyError:
        raise ConfigError(f"no template {name!r} (known: {', '.join(sorted(RECIPES))})") from None


def templates_dir(cache_dir: Path) -> Path:
    """Return where templates lie."""
    return cache_dir / "templates"


def template_directory(cache_dir: Path, recipe: Recipe, image: GuestImage, launcher: Launcher) -> Path:
    """Return where the template of `recipe` lies, or would lie, for this image, QEMU and acceleration."""
    ingredients = "\n".join(
        (
            str(_FORMAT),
            image.digest,
            launcher.qemu_version(),
            recipe.name,
            *recipe.opens,
            # A set has no order that holds from one process to the next.
            *sorted(recipe.opened),
            machine_spec(launcher).model_dump_json(),
        )
    )
    return templates_dir(cache_dir) / f"{recipe.name}-{hashlib.sha256(ingredients.encode()).hexdigest()[:16]}"


def machine_spec(launcher: Launcher) -> MachineSpec:
    """Return the machine that templates are made of."""
    return MachineSpec(acceleration=launcher.acceleration().kind)


def find_template(cache_dir: Path, name: str, image: GuestImage, launcher: Launcher) -> Frozen:
    """Open a template that was built.

    Raises:
        ConfigError: There is no such template, or it was not built for this image and QEMU.
        SandboxError: It is damaged.
    """
    directory = template_directory(cache_dir, recipe_named(name), image, launcher)
    if not directory.is_dir():
        raise ConfigError(
            f"template {name} is not built for this image, {launcher.name}'s QEMU {launcher.qemu_version()} and "
            f"{launcher.acceleration().kind}: run `deskfork template build {name}`"
        )
    frozen = read_frozen(directory)
    frozen.check()
    return frozen


def is_built(cache_dir: Path, name: str, image: GuestImage, launcher: Launcher) -> bool:
    """Whether a template is there and undamaged.

    Raises:
        ConfigError: No recipe has that name.
    """
    recipe_named(name)
    try:
        find_template(cache_dir, name, image, launcher)
    except (ConfigError, SandboxError):
        return False
    return True


def list_templates(cache_dir: Path) -> list[TemplateSummary]:
    """Return every template on disk, usable or not."""
    root = templates_dir(cache_dir)
    found = []
    for directory in sorted(root.iterdir()) if root.is_dir() else []:
        if directory.name.startswith(".") or not (directory / MANIFEST_NAME).exists():
            continue
        occupied = sum(path.stat().st_blocks * 512 for path in directory.iterdir()) / 2**20
        problem = ""
        try:
            frozen = read_frozen(directory)
            frozen.check()
        except DeskforkError as error:
            problem = str(error)
        manifest = None if problem else frozen.manifest
        found.append(
            TemplateSummary(
                name=manifest.name if manifest else directory.name.rpartition("-")[0],
                directory=directory,
                digest=manifest.digest if manifest else "",
                qemu_version=manifest.qemu_version if manifest else "",
                acceleration=manifest.machine.acceleration if manifest else "",
                created_at=manifest.created_at if manifest else datetime.fromtimestamp(directory.stat().st_mtime, UTC),
                disk_mib=occupied,
                problem=problem,
            )
        )
    return found
