"""Guards: a script says what its file holds and nothing else; a file that holds something else is refused by line."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.agent.limits import Budget, Limits
from deskfork.agent.meter import StepMeter
from deskfork.agent.models.cache import ResponseCache
from deskfork.agent.models.metered import MeteredModel
from deskfork.agent.models.replies import MAX_JSONL_BYTES, MAX_YAML_BYTES, read_script, read_trajectory
from deskfork.agent.models.reply import MAX_REPLY_CHARS, parsed_arguments
from deskfork.agent.models.settings import ModelSettings
from deskfork.agent.models.specs import build_model
from deskfork.core.errors import ConfigError, InfraError
from deskfork.records.trajectory import StepRecord, ToolCallRecord

SCRIPT = """\
- |
  Thought: `fences` and "tags" <code>
  x = 1
  </code>
- DONE
- content: I press.
  tool_calls:
    - {name: press, arguments: {key: a, times: 2}}
- tool_calls:
    - {name: press, arguments: '{"key": '}
    - {name: wait, arguments: {}}
"""
SAID = [
    ('Thought: `fences` and "tags" <code>\nx = 1\n</code>', ()),
    ("DONE", ()),
    ("I press.", (("press", {"key": "a", "times": 2}),)),
    ("", (("press", '{"key": '), ("wait", {}))),
]


def wrap(spec: str, **more: Any) -> Any:
    return MeteredModel(build_model(spec, ModelSettings()), Budget(Limits()), StepMeter(), **more)


def run_out(model: Any) -> list[Any]:
    said = []
    while model.has_more:
        message = model.generate([], tools_to_call_from=[])
        said.append((model.last.content, model.last.tool_calls))
        assert (message.content or "") == model.last.content
        assert (model.last.input_tokens, model.last.output_tokens) == (0, 0)
    return said


def as_lines(path: Path) -> Path:
    """Write the YAML script beside it as JSON Lines."""
    import yaml

    lines = path.with_suffix(".jsonl")
    lines.write_text("\n".join(json.dumps(reply) for reply in yaml.safe_load(path.read_text())) + "\n\n")
    return lines


def test_a_script_says_its_replies_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a script.yaml"
    path.write_text(SCRIPT)
    assert run_out(wrap(f"scripted:{path}")) == SAID
    assert run_out(wrap(f"scripted:{as_lines(path)}")) == SAID


def test_each_build_begins_anew_and_the_end_is_known_before_it_is_hit(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("- WAIT\n")
    for _ in range(2):
        model = wrap(f"scripted:{path}")
        assert model.has_more
        model.generate([])
        assert not model.has_more
    with pytest.raises(InfraError, match="after its 1 replies"):
        model.generate([])


def test_a_script_costs_nothing_takes_images_and_is_never_cached(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("- a\n- b\n")
    built = build_model(f"scripted:{path}", ModelSettings())
    assert (built.price.cost_usd(10, 10), built.takes_images, built.is_remote) == (0.0, True, False)
    for _ in range(2):
        model = wrap(f"scripted:{path}", cache=ResponseCache(tmp_path / "cache", "repeat 0"))
        assert [said for said, _ in run_out(model)] == ["a", "b"]
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_trajectory_is_said_again(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.jsonl"
    times = {"model_s": 0.1, "guest_s": 0.1, "observe_s": 0.1, "framework_s": 0.1}
    rest = {"code": None, "action": "none", "stdout": "", "stderr": "", "error": None, **times}
    said = [
        StepRecord(step=1, model_output="Thought.\n<code>x</code>", **rest),
        StepRecord(step=2, model_output="", tool_calls=(ToolCallRecord(name="press", arguments={"key": "a"}),), **rest),
        StepRecord(step=3, model_output="Hm.", tool_calls=(ToolCallRecord(name="press", arguments="{"),), **rest),
    ]
    path.write_text("".join(record.model_dump_json() + "\n" for record in said))
    assert run_out(wrap(f"replay:{path}")) == [
        ("Thought.\n<code>x</code>", ()),
        ("", (("press", {"key": "a"}),)),
        ("Hm.", (("press", "{"),)),
    ]


def test_a_trajectory_of_before_tool_calls_were_recorded_is_said_again(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.jsonl"
    path.write_text('{"step": 1, "model_output": "a", "code": null}\n{"step": 2, "model_output": ""}\n')
    assert run_out(wrap(f"replay:{path}")) == [("a", ()), ("(empty answer)", ())]


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("s.yaml", "", "line 1: a script is a list"),
        ("s.yaml", "a: b", "line 1: a script is a list"),
        ("s.yaml", "- a\n- 42\n", "line 2: a reply is text, or an object with content, tool_calls or both, not int"),
        ("s.yaml", "- a\n- {}\n", "line 2: a reply is text"),
        ("s.yaml", "- a\n-\n", "line 2"),
        ("s.yaml", "- content: a\n  tool_call: []\n", "line 1: tool_call: Extra"),
        ("s.yaml", "- a\n\n- tool_calls:\n  - {name: x}\n", "line 3: tool_calls.0.arguments: Field required"),
        ("s.yaml", "- tool_calls: [{name: x, arguments: [1]}]\n", "line 1: the arguments of x must be an object"),
        ("s.yaml", "- tool_calls: [{name: x, arguments: {d: 2024-01-01}}]\n", "line 1: tool_calls.0.arguments"),
        ("s.yaml", "- 'a\n", "line 2: not YAML"),
        ("s.yaml", "- &a [x]\n- *a\n", "line 2: not YAML: aliases"),
        ("s.yaml", "- a\n---\n- b\n", "line 2: not YAML"),
        ("s.yaml", "- !!python/object/apply:os.system ['true']\n", "line 1: not YAML"),
        ("s.yaml", "- " + "[" * 20_000, "not YAML"),
        ("s.yaml", "- " + "x" * (MAX_REPLY_CHARS + 1), "line 1: a reply of more than"),
        ("s.jsonl", '"a"\n\n{"content": 1}\n', "line 3: content: Input should be a valid string"),
        ("s.jsonl", '"a"\nDONE\n', "line 2: not JSON"),
        ("s.jsonl", "[" * 100_000, "line 1: not JSON"),
        ("s.jsonl", "1" * 10_000, "line 1: not JSON"),
        ("s.txt", "- a\n", "must end in .yaml, .yml or .jsonl"),
    ],
)  # fmt: skip
def test_a_broken_script_is_refused_by_file_and_line(tmp_path: Path, name: str, text: str, where: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        build_model(f"scripted:{path}", ModelSettings())
    assert str(path) in str(caught.value)
    assert where in str(caught.value)
    assert len(str(caught.value)) < 600 + len(str(path))


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"model_output": "a"}\n{"code": "x"}', "line 2: each line must be a step"),
        ('{"model_output": null}', "line 1: each line must be a step"),
        ("[]", "line 1: each line must be a step"),
        ('{"model_output": "", "tool_calls": [{"name": 1, "arguments": {}}]}', "line 1: tool_calls: 0.name"),
        ('{"model_output": "a"}\n{"model_out', "line 2: not JSON"),
    ],
)
def test_a_broken_trajectory_is_refused_by_file_and_line(tmp_path: Path, text: str, where: str) -> None:
    path = tmp_path / "trajectory.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        build_model(f"replay:{path}", ModelSettings())
    assert f"{path}, {where}" in str(caught.value)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"- \xe9\n")
    (tmp_path / "folder.yaml").mkdir()
    for name, size in (("large.yaml", MAX_YAML_BYTES), ("large.jsonl", MAX_JSONL_BYTES)):
        with (tmp_path / name).open("wb") as stream:
            stream.truncate(size + 1)
    for name, why in [("none.yaml", "No such file"), ("latin.yaml", "not UTF-8"), ("folder.yaml", "directory"),
                      ("large.yaml", "larger than 4 MiB"), ("large.jsonl", "larger than 64 MiB")]:  # fmt: skip
        with pytest.raises(ConfigError, match=why):
            read_script(tmp_path / name)
    with pytest.raises(ConfigError, match="larger than 64 MiB"):
        read_trajectory(tmp_path / "large.jsonl")


def test_lone_surrogates_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('"\\ud800"\n{"tool_calls": [{"name": "\\ud800", "arguments": {"\\ud800": "\\udfff"}}]}\n')
    assert run_out(wrap(f"scripted:{path}")) == [("?", ()), ("", (("?", {"?": "?"}),))]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text() | JSON.map(json.dumps))
def test_any_arguments_become_an_object_or_stay_text(text: str) -> None:
    found = parsed_arguments(text)
    assert isinstance(found, dict | str)
    json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    if isinstance(found, str):
        assert found == text.encode("utf-8", "replace").decode()


@given(st.lists(st.text() | st.builds(dict, content=st.text(min_size=1)), max_size=5))
def test_any_json_lines_script_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, replies: list[Any]) -> None:
    path = tmp_path_factory.mktemp("scripts") / "s.jsonl"
    path.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    found = [reply.content for reply in read_script(path)]
    wanted = [reply if isinstance(reply, str) else reply["content"] for reply in replies]
    assert found == [text.encode("utf-8", "replace").decode() for text in wanted]


YAML_WORDS = st.sampled_from(
    ["- ", "a", ": ", "\n", "  ", "!!int ", "!!timestamp ", "!!binary ", "!!float ", "2024-13-01", "0o9",
     "&a ", "*a", "[", "]", "{", "}", "'", '"', "|\n", "? ", "<<", "content", "tool_calls",
     "%", "---", "\x1f", "1:60", "=", "0x", "."]
)  # fmt: skip


@given(st.lists(YAML_WORDS | st.text(max_size=3), max_size=12))
def test_any_yaml_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    path = tmp_path_factory.mktemp("scripts") / "s.yaml"
    path.write_bytes(b"- " + "".join(words).encode("utf-8", "replace"))
    refusal = ""
    try:
        read_script(path)
    except ConfigError as error:
        refusal = str(error)
    assert not refusal or str(path) in refusal
