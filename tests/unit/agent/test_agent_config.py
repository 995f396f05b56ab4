"""Guards: a wrong agent spec is refused with the name of the thing that is wrong and a way out."""

from pathlib import Path

import pytest

from deskfork.agent.config import CodeConfig, NullConfig, OracleConfig, ReplayConfig, parse_agent
from deskfork.agent.observe.observe import ScreenshotConfig, WindowsConfig
from deskfork.core.errors import ConfigError

EXAMPLES = sorted((Path(__file__).parents[3] / "configs" / "agents").glob("*.yaml"))


def test_the_short_forms() -> None:
    assert isinstance(parse_agent("oracle"), OracleConfig)
    assert isinstance(parse_agent("null"), NullConfig)
    assert parse_agent("replay:some/file.jsonl") == ReplayConfig(file=Path("some/file.jsonl"))
    assert parse_agent("code", "openai:m@http://h/v1") == CodeConfig(model="openai:m@http://h/v1")
    assert [parse_agent(spec).name for spec in ("oracle", "null", "replay:x")] == ["oracle", "null", "replay"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_valid(path: Path) -> None:
    assert isinstance(parse_agent(str(path), "openai:m"), CodeConfig)


def test_the_examples_exist() -> None:
    assert len(EXAMPLES) >= 3


def test_a_yaml_file_is_read_and_the_command_line_names_the_model(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(
        "kind: code\nname: mine\nmodel: openai:a\nobserve: [{kind: screenshot, keep_last: 5}, {kind: windows}]\n"
    )
    agent = parse_agent(str(path), "openai:b")
    assert isinstance(agent, CodeConfig)
    assert (agent.name, agent.model) == ("mine", "openai:b")
    assert agent.observe == (ScreenshotConfig(keep_last=5), WindowsConfig())


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
        ("name: x", "kind"),
        ("kind: oracle\ncell_timeout: 3", "cell_timeout"),
        ("kind: oracle\ncell_timeout_s: -3", "cell_timeout_s"),
        ("kind: oracle\nname: ../../x", "name"),
        ("kind: oracle\nobserve: [{kind: smell}]", "smell"),
        ("kind: oracle\nobserve: [{kind: screenshot, keep_last: -1}]", "keep_last"),
        ("kind: code", "--model"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        parse_agent(str(path))
    assert part in str(caught.value)
    assert str(path) in str(caught.value)
