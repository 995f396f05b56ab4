"""Guards against templates that are built and never found again, and against ones found for another machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deskfork.core.errors import ConfigError
from deskfork.sandbox.templates.template import RECIPES, recipe_named

_SHOW = """
from pathlib import Path
from deskfork.sandbox.accel import Acceleration
from deskfork.sandbox.images.image import GuestImage
from deskfork.sandbox.templates.template import recipe_named, template_directory


class Launcher:
    name = "qemu"

    def qemu_version(self):
        return "10.0"

    def acceleration(self):
        return Acceleration(kind="tcg", reason="")


image = GuestImage(digest="d", directory=Path("/image"))
print(template_directory(Path("/cache"), recipe_named("jupyter"), image, Launcher()))
"""


def _directory(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", _SHOW], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_every_process_finds_a_template_at_the_same_place() -> None:
    assert len({_directory(seed) for seed in ("0", "1", "2", "3")}) == 1


def test_an_unknown_template_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no template 'windows' \(known: desktop, jupyter\)"):
        recipe_named("windows")


def test_recipes_are_known_by_their_own_names() -> None:
    assert all(recipe_named(name).name == name for name in RECIPES)
    assert Path(RECIPES["jupyter"].opens[0]).is_absolute()
