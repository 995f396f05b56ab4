"""Templates: what kinds there are, and those that were built."""

import hashlib
from pathlib import Path

from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError, SandboxError
from deskfork.sandbox.frozen.frozen import Frozen, read_frozen
from deskfork.sandbox.images.image import GuestImage
from deskfork.sandbox.launcher import Launcher
from deskfork.sandbox.machine import MachineSpec

OPEN_TIMEOUT_S = 400.0
_FORMAT = 1
"""Counted up when frozen machines of an older deskfork cannot be forked any more."""
_BAKE_FORMAT = 1
"""The same for baked templates alone."""
BAKED_MARK = "-baked-"
"""In the name of a baked template's folder."""


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
            opened=frozenset({"jupyterlab", "browser", "https://www.bing.com/"}),
        ),
    )
}


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


def baked_directory(parent: Frozen, key: str, *, network: bool) -> Path:
    """Return where what set-up `key` made of a template lies, or would lie."""
    ingredients = f"{_BAKE_FORMAT}\n{parent.manifest.digest}\n{key}\n{network}"
    name = f"{parent.manifest.name}{BAKED_MARK}{hashlib.sha256(ingredients.encode()).hexdigest()[:16]}"
    return parent.directory.parent / name


def find_baked(parent: Frozen, key: str, *, network: bool) -> Frozen | None:
    """Open what was baked over a template, if that set-up was.

    Raises:
        SandboxError: It is damaged.
    """
    directory = baked_directory(parent, key, network=network)
    if not directory.is_dir():
        return None
    found = read_frozen(directory, parent)
    found.check()
    return found
