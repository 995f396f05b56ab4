"""Guards: a wrong agent spec is refused with the name of the thing that is wrong and a way out."""

import itertools
from pathlib import Path

import pytest

from deskfork.agent.config import ModelAgentConfig, Named, NullConfig, OracleConfig, ReplayConfig, parse_agent
from deskfork.agent.observe.a11y_tree import TreeOptions
from deskfork.core.errors import ConfigError

SPACES = ("code+gui", "code", "pyautogui", "computer_13", "computer", "computer+tools")
EXAMPLES = sorted((Path(__file__).parents[3] / "configs" / "agents").glob("*.yaml"))


def test_the_short_forms() -> None:
    assert isinstance(parse_agent("oracle"), OracleConfig)
    assert isinstance(parse_agent("null"), NullConfig)
    assert parse_agent("replay:some/file.jsonl") == ReplayConfig(file=Path("some/file.jsonl"))
    assert parse_agent("code", "openai:m@http://h/v1") == ModelAgentConfig(
        name="code", actions="code", observe=(Named(name="terminal"),), model="openai:m@http://h/v1"
    )
    assert [parse_agent(spec).name for spec in ("oracle", "null", "replay:x")] == ["oracle", "null", "replay"]


@pytest.mark.parametrize("name", SPACES)
def test_each_action_space_is_an_agent_by_itself(name: str) -> None:
    agent = parse_agent(name, "openai:m")
    assert isinstance(agent, ModelAgentConfig)
    assert (agent.name, agent.actions) == (name, name)
    assert tuple(named.name for named in agent.observe) == agent.space().observe


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_valid(path: Path) -> None:
    assert isinstance(parse_agent(str(path), "openai:m"), ModelAgentConfig)


def test_the_examples_exist() -> None:
    assert len(EXAMPLES) >= 3


def test_a_yaml_file_is_read_and_the_command_line_names_the_model(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(
        "name: mine\nactions: pyautogui\nmodel: openai:a\nobserve: [screenshot, {name: a11y_tree, tokens: 700}]\n"
    )
    agent = parse_agent(str(path), "openai:b")
    assert isinstance(agent, ModelAgentConfig)
    assert (agent.name, agent.model) == ("mine", "openai:b")
    assert [(callback.name, options) for callback, options in agent.step_callbacks()][1] == (
        "a11y_tree",
        TreeOptions(tokens=700),
    )


@pytest.mark.parametrize(("before", "after"), list(itertools.permutations(SPACES, 2)))
def test_an_ablation_is_a_change_of_one_word(tmp_path: Path, before: str, after: str) -> None:
    path = tmp_path / "agent.yaml"
    text = f"name: arm\nactions: {before}\nmodel: openai:m\nobserve: [text_only]\n"
    path.write_text(text)
    first = parse_agent(str(path))
    path.write_text(text.replace(before, after))
    assert parse_agent(str(path)) == first.model_copy(update={"actions": after})


@pytest.mark.parametrize(
    ("actions", "observe"),
    [
        ("computer_13", "[screenshot, terminal]"),
        ("computer", "[terminal]"),
        ("computer+tools", "[terminal]"),
        ("code", "[som]"),
        ("code+gui", "[screenshot, som]"),
        ("code+gui", "[text_only, screenshot]"),
        ("code+gui", "[screenshot, screenshot]"),
    ],
)
def test_what_makes_no_sense_together_is_refused(tmp_path: Path, actions: str, observe: str) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(f"name: odd\nactions: {actions}\nmodel: openai:m\nobserve: {observe}\n")
    with pytest.raises(ConfigError, match=r"does not go with|twice"):
        parse_agent(str(path))


def test_a_replay_in_a_yaml_file_lies_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text("kind: replay\nfile: steps.jsonl\n")
    assert parse_agent(str(path)) == ReplayConfig(file=tmp_path / "steps.jsonl")


@pytest.mark.parametrize(
    ("spec", "model", "part"),
    [
        ("orakel", None, "replay:FILE"),
        ("", None, "replay:FILE"),
        ("missing.yaml", None, "No such file"),
        ("code", None, "--model"),
        ("oracle", "openai:m", "drop --model"),
        ("replay:", None, "replay:FILE"),
    ],
)
def test_a_wrong_spec_is_refused(spec: str, model: str | None, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_agent(spec, model)
    assert part in str(caught.value)
    assert spec in str(caught.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[1, 2]", "settings"),
        ("", "settings"),
        ("kind: [", "not YAML"),
        ("kind: oracles", "oracles"),
        ("name: x", "actions"),
        ("actions: tools", "tools"),
        ("kind: oracle\ncell_timeout: 3", "cell_timeout"),
        ("kind: oracle\ncell_timeout_s: -3", "cell_timeout_s"),
        ("kind: oracle\nname: ../../x", "name"),
        ("actions: code+gui\nmodel: openai:m\nobserve: [smell]", "smell"),
        ("actions: code+gui\nmodel: openai:m\nobserve: [{name: a11y_tree, tokens: -1}]", "tokens"),
        ("actions: code+gui\nmodel: openai:m\nobserve: [{name: screenshot, tokens: 9}]", "tokens"),
        ("actions: code+gui\nmodel: openai:m\ncontext: {images: -1}", "images"),
        ("actions: code+gui", "--model"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        parse_agent(str(path))
    assert part in str(caught.value)
    assert str(path) in str(caught.value)
