"""Guards what users may add from packages of their own: action spaces, step callbacks and models, by entry point."""

import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deskfork.agent.actions.space import action_space, action_spaces
from deskfork.agent.catalogue import catalogue, describe
from deskfork.agent.config import parse_agent
from deskfork.agent.observe.base import step_callbacks
from deskfork.core.errors import ConfigError

PACKAGE = Path(__file__).parent / "example_package"
Install = Callable[[dict[str, dict[str, str]], str], None]


def forget() -> None:
    action_spaces.cache_clear()
    step_callbacks.cache_clear()
    for name in [name for name in sys.modules if name.startswith("deskfork_example")]:
        del sys.modules[name]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Returns a function that installs entry points, as pip leaves them; the example's module is importable."""
    monkeypatch.syspath_prepend(str(PACKAGE))

    def install_it(points: dict[str, dict[str, str]], name: str) -> None:
        info = tmp_path / name / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in found.items()) for group, found in points.items()]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        monkeypatch.syspath_prepend(str(info.parent))
        forget()

    yield install_it
    forget()


@pytest.fixture
def example(install: Install) -> None:
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    install(project["entry-points"], project["name"].replace("-", "_"))


def test_a_package_adds_an_action_space_a_callback_and_a_model(
    example: None, run: Any, screen_guest: Any, tmp_path: Path
) -> None:
    agent = tmp_path / "agent.yaml"
    agent.write_text(
        f"name: typist\nactions: keys-only\ncallbacks: [{{name: note-windows, file: {tmp_path / 'titles'}}}]\n"
        "model: echo:hello WORLD DONE\n"
    )
    ran = run(parse_agent(str(agent)), screen_guest())
    assert [record.refused for record in ran.records] == [None, "do not shout", None]
    assert (ran.records[0].action, ran.records[0].lines) == ("gui", {"gui": 1})
    assert (ran.outcome.self_report, ran.outcome.tokens.total) == ("done", 6)
    assert (tmp_path / "titles").read_text() == "1: 60\n2: 60\n3: 60\n"
    assert "Do the thing. (15 steps, 1280 x 800)" in ran.outcome.messages[1]["text"]


def test_what_a_package_adds_is_listed_and_shown(example: None) -> None:
    names = {(entry.kind, entry.name) for entry in catalogue().entries}
    assert {("action space", "keys-only"), ("step callback", "note-windows")} <= names
    assert describe("keys-only").system_prompt == "Say what is to be typed."


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("deskfork_example:NO_SUCH", "NO_SUCH"),
        ("no_such_module:SPACE", "no_such_module"),
        ("deskfork_example:echo", "is no ActionSpace"),
    ],
)
def test_what_is_broken_is_refused_by_package_and_name(install: Install, value: str, said: str) -> None:
    install({"deskfork.action_spaces": {"broken": value}}, "broken_package")
    with pytest.raises(ConfigError, match=said) as caught:
        action_space("broken")
    assert "broken_package" in str(caught.value)


def test_a_name_that_two_packages_claim_is_refused(install: Install) -> None:
    install({"deskfork.action_spaces": {"code": "deskfork_example:KEYS_ONLY"}}, "usurper")
    with pytest.raises(ConfigError, match="deskfork and usurper"):
        action_space("code")


@pytest.mark.parametrize("name", ["code+gui", "code", "pyautogui", "computer_13", "computer", "computer+tools"])
def test_each_agent_is_shown_as_its_model_will_see_it(name: str) -> None:
    shown = describe(name)
    assert shown.config["actions"] == name
    assert "model" not in shown.config
    assert "$instruction" in shown.task_prompt
    assert "$" not in shown.task_prompt.replace("$instruction", "")
    assert len(shown.system_prompt) > 500
    assert bool(shown.tools) == (name in ("computer", "computer+tools"))


@pytest.mark.parametrize("name", ["oracle", "null", "replay:x"])
def test_what_asks_no_model_has_no_prompt(name: str) -> None:
    with pytest.raises(ConfigError, match="asks no model"):
        describe(name)
