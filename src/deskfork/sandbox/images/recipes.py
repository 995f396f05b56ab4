"""Where the recipes of guest image and QEMU image lie: in the checkout that this package runs from."""

from pathlib import Path
from typing import Literal

from deskfork.core.errors import ConfigError


def recipe_dir(kind: Literal["guest", "qemu"]) -> Path:
    """Return the folder of a recipe.

    Raises:
        ConfigError: deskfork was installed without its checkout.
    """
    directory = Path(__file__).resolve().parents[4] / "sandbox_images" / kind
    if not directory.is_dir():
        raise ConfigError(
            f"{directory} is missing: run deskfork from its checkout (`make setup`, then `uv run deskfork`)"
        )
    return directory
