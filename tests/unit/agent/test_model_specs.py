"""Guards: a user's own package adds a kind of model without touching this one; a broken one is told by its name."""

import sys
from pathlib import Path
from typing import Any

import pytest

from deskfork.agent.models.settings import ModelSettings
from deskfork.agent.models.specs import build_model
from deskfork.core.errors import ConfigError

MODULE = """
from deskfork.agent.models.built import BuiltModel, Price
from deskfork.agent.models.reply import Reply
from deskfork.agent.models.scripted import RepliesModel
from deskfork.core.errors import ConfigError

def echo(spec, name, settings):
    if name == "nobody":
        raise ConfigError("nobody says nothing")
    said = f"{name} at {settings.temperature}"
    model = RepliesModel([Reply(content=said, input_tokens=1, output_tokens=1)], spec)
    return BuiltModel(model, spec, is_remote=False, takes_images=False, price=Price(1.0, 1.0))

def fails(spec, name, settings):
    return {}["no such key"]

def nothing(spec, name, settings):
    return None

number = 42
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns a function that installs a package with entry points, as pip leaves one."""

    def install_it(package: str, **points: str) -> None:
        folder = tmp_path / package
        info = folder / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[deskfork.models]", *lines, ""]))
        (folder / f"{package}_models.py").write_text(MODULE)
        (folder / f"{package}_broken.py").write_text("import no_such_package\n")
        monkeypatch.syspath_prepend(str(folder))

    yield install_it
    for name in [name for name in sys.modules if name.endswith(("_models", "_broken")) and name.startswith("kit")]:
        del sys.modules[name]


def build(spec: str) -> Any:
    return build_model(spec, ModelSettings(temperature=0.5))


def test_a_packages_scheme_is_a_scheme_like_any_other(install: Any) -> None:
    install("kit", echo="kit_models:echo")
    built = build("echo:hello:there")
    assert built.model.generate([]).content == "hello:there at 0.5"
    assert built.parameters == {"temperature": 0.5, "max_tokens": None}


def test_a_packages_own_refusal_passes(install: Any) -> None:
    install("kit", echo="kit_models:echo")
    with pytest.raises(ConfigError, match="nobody says nothing"):
        build("echo:nobody")


@pytest.mark.parametrize("spec", ["other:model", "model", ":model", "echo:", "Echo:x"])
def test_an_unknown_scheme_is_told_what_there_is(install: Any, spec: str) -> None:
    install("kit", echo="kit_models:echo")
    with pytest.raises(ConfigError) as caught:
        build(spec)
    known = ("litellm:MODEL", "openai:MODEL@BASE_URL", "transformers:MODEL", "scripted:FILE", "replay:FILE", "echo:...")
    assert [form for form in known if form not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("point", "why"),
    [
        ("kit_models:no_such", "no_such"),
        ("kit_broken:echo", "no_such_package"),
        ("kit_nowhere:echo", "kit_nowhere"),
        ("kit_models:number", "not a callable, but int"),
        ("kit_models:fails", "no such key"),
        ("kit_models:nothing", "NoneType"),
    ],
)
def test_a_broken_entry_point_is_told_by_package_and_name(install: Any, point: str, why: str) -> None:
    install("kit", mine=point)
    with pytest.raises(ConfigError) as caught:
        build("mine:x")
    for part in ("'mine'", "package kit", point, why):
        assert part in str(caught.value)


def test_a_broken_package_does_not_hinder_others(install: Any) -> None:
    install("kit", mine="kit_broken:echo", echo="kit_models:echo")
    assert build("echo:x").model.generate([]).content == "x at 0.5"
    with pytest.raises(ConfigError, match="names no model"):
        build("openai:")


def test_a_name_of_deskforks_own_cannot_be_taken(install: Any, tmp_path: Path) -> None:
    install("kit", scripted="kit_models:echo")
    with pytest.raises(ConfigError, match=r"'scripted' of package kit \(kit_models:echo\).*deskfork's own"):
        build("scripted:x.yaml")


def test_two_packages_of_one_name_are_both_told(install: Any) -> None:
    install("kit", echo="kit_models:echo")
    install("kit2", echo="kit2_models:echo")
    with pytest.raises(ConfigError, match="kit and kit2"):
        build("echo:x")
