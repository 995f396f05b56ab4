"""Guards the readers of tasks: a file that makes one raise anything but a sentence, or that spoils the other tasks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkouts import TASK, judged, step, write_checkout
from hypothesis import given, settings
from hypothesis import strategies as st

from deskfork.core.errors import TaskError
from deskfork.tasks.describe import describe_task
from deskfork.tasks.load import open_source
from deskfork.tasks.own import TASK_FILE
from deskfork.tasks.source import TaskSource

FILE = "evaluation_examples/gold.csv"
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from([FILE, "/home/user/x", "../x", "http://x/y", "account", "\x00", "launch", "vm_file"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "path", "src", "rules", "parameters", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
STEPS = [
    step("copyfile_from_host_to_guest", src=FILE, dest="/home/user/x"),
    step("script_and_execute", src=FILE, dest="/home/user/init.sh", options=["a"]),
    step("launch", command="a b", shell=True),
    step("google_chrome_browser", debugging_port=1337, listening_port=9222, urls=["https://example.org/"]),
    step("execute", command=["~/a", "b"]),
    step("activate_window", window_name="x", strict=False),
    step("sleep", seconds=1.5),
]
EVALUATORS = [
    TASK["evaluator"],
    judged(
        ["check_include_exclude", "is_jupyter_cell_executed"],
        [
            {"type": "vm_script_output", "src": FILE, "dest": "/home/user/eval.sh"},
            {"type": "vm_file", "path": ["/a", "/b"], "dest": ["a", "b"], "multi": True, "gives": [1]},
        ],
        [{"type": "rule", "rules": {"include": ["a"]}}, {"type": "rule", "rules": {"expected": []}}],
        options=[None, {}],
        conj="or",
        postconfig=STEPS,
    )["evaluator"],
    judged(
        "is_expected_url_pattern_match",
        {"type": "active_tab_info", "goto_prefix": "http://"},
        {"type": "rule", "rules": {"expected": ["a", "b"]}},
    )["evaluator"],
]
FOREIGN = [{"id": "t1", **TASK, "config": STEPS, "evaluator": evaluator} for evaluator in EVALUATORS]
OWN = {
    "instruction": "do it",
    "tags": ["gui"],
    "setup": [{"type": "copy", "source": "a.csv", "target": "/x"}, {"type": "launch", "command": ["a"], "window": "w"}],
    "evaluator": {
        "checks": [
            {
                "metric": "compare_csv",
                "result": {"type": "guest_file", "path": "/x", "also": ["/y"]},
                "expected": {"type": "host_file", "path": "a.csv"},
                "options": {"strict": False},
            }
        ],
        "post_setup": [{"type": "sleep", "duration_s": 1}],
    },
    "solution": "a.csv",
    "wording": "abstract",
}


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*at, key))


def replaced(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    if not at:
        return new
    copy = value.copy()
    copy[at[0]] = replaced(value[at[0]], at[1:], new)
    return copy


def without(value: Any, at: tuple[Any, ...]) -> Any:
    if len(at) == 1:
        copy = value.copy()
        del copy[at[0]]
        return copy
    return replaced(value, at[:1], without(value[at[0]], at[1:]))


def mutations(*tasks: dict[str, Any]) -> st.SearchStrategy[Any]:
    """One or two values of a good task replaced, and perhaps a key gone."""
    spots = [(task, at) for task in tasks for at in places(task)]
    changed = st.builds(lambda spot, new: replaced(*spot, new), st.sampled_from(spots), JSON)
    gone = st.builds(lambda spot: without(*spot), st.sampled_from([spot for spot in spots if spot[1]]))
    return changed | gone


def read_both_ways(source: TaskSource, broken: str, well: str) -> None:
    """Load the mutated task; it is a task or one sentence that names it, and the other task is untouched."""
    try:
        loaded = source.load(broken)
    except TaskError as error:
        message = str(error)
        assert broken in message
        assert "\n" not in message
        assert len(message) < 3000
    else:
        message = ""
        assert loaded.id == broken
    listed = {summary.id: summary for summary in source.list()}
    assert (listed[broken].runnable, listed[broken].error) == (not message, message)
    assert listed[well].runnable
    described = describe_task(source, broken)
    assert (described.task is None) == bool(message)
    json.dumps(described.flat())
    json.dumps([summary.model_dump(mode="json") for summary in listed.values()])


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkout(tmp_path_factory.mktemp("foreign"), {"jupyter/t1": {}, "jupyter/u2": {}})


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("own")
    for name in ("t1", "u2"):
        (top / name).mkdir()
        (top / name / "a.csv").write_text("x\n")
        (top / name / TASK_FILE).write_text(yaml.safe_dump(OWN))
    return top


@settings(max_examples=150, deadline=None)
@given(mutations(*FOREIGN))
def test_no_change_to_upstreams_json_makes_the_reader_raise(foreign: Path, mutated: Any) -> None:
    (foreign / "evaluation_examples/examples/jupyter/t1/t1.json").write_text(json.dumps(mutated))
    read_both_ways(open_source(foreign), "t1", "u2")


@settings(max_examples=80, deadline=None)
@given(mutations(OWN))
def test_no_change_to_our_yaml_makes_the_reader_raise(own: Path, mutated: Any) -> None:
    (own / "t1" / TASK_FILE).write_text(yaml.safe_dump(mutated))
    read_both_ways(open_source(own), "t1", "u2")


@settings(max_examples=80, deadline=None)
@given(raw=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_bytes_make_a_reader_raise(foreign: Path, own: Path, raw: bytes) -> None:
    (foreign / "evaluation_examples/examples/jupyter/t1/t1.json").write_bytes(raw)
    (own / "t1" / TASK_FILE).write_bytes(raw)
    read_both_ways(open_source(foreign), "t1", "u2")
    read_both_ways(open_source(own), "t1", "u2")


@settings(max_examples=80, deadline=None)
@given(index=JSON | st.dictionaries(st.text(max_size=5), st.lists(st.text(max_size=5))))
def test_no_index_file_makes_the_reader_raise(foreign: Path, index: Any) -> None:
    for name in ("all", "account"):
        (foreign / f"evaluation_examples/test_{name}.json").write_text(json.dumps(index))
    source = open_source(foreign)
    assert "u2" in {summary.id for summary in source.list()}
    assert all("\n" not in complaint for complaint in source.complaints())
