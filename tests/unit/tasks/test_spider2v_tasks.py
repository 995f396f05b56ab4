"""Guards the reading of Spider2-V checkouts: the real one, and made-up ones that are broken."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from deskfork.core.errors import ConfigError, TaskError
from deskfork.tasks.checks import (
    CompareNotebookOutputs,
    CompareTextFile,
    IsExpectedUrlPatternMatch,
    IsJupyterCellExecuted,
)
from deskfork.tasks.load import open_source
from deskfork.tasks.solution import read_cells
from deskfork.tasks.spider2v.source import Spider2VTasks
from deskfork.tasks.steps import ActivateWindowStep, BrowserStep, CopyStep, ExecuteStep, LaunchStep, ScriptStep

REPOSITORY = Path(__file__).parents[3]
CHECKOUT = Path(os.environ.get("SPIDER2V", REPOSITORY / "../shared/spider2-v"))
PAIRS = [("00b43a0a", "cad93c85"), ("2ed53418", "c0e9c1bc"), ("1fe7d03d", "e1da7d3d")]
needs_checkout = pytest.mark.skipif(
    not CHECKOUT.is_dir(), reason=f"no Spider2-V checkout at {CHECKOUT}; name one with SPIDER2V"
)
FOLDER = "evaluation_examples/examples/jupyter/t1"
GOOD: dict[str, Any] = {
    "id": "t1",
    "snapshot": "jupyter",
    "instruction": "do it",
    "tags": ["cli", "abstract"],
    "config": [
        {"type": "script_and_execute", "parameters": {"src": f"{FOLDER}/init.sh", "dest": "/home/user/init.sh"}}
    ],
    "evaluator": {
        "func": "compare_csv",
        "result": {"type": "vm_file", "path": "/home/user/Desktop/x.csv", "dest": "x.csv"},
        "expected": {"type": "local_file", "path": f"{FOLDER}/gold.csv", "dest": "gold.csv"},
    },
}


def make_checkout(top: Path, text: str) -> Path:
    folder = top / FOLDER
    folder.mkdir(parents=True)
    (folder / "t1.json").write_text(text)
    (folder / "init.sh").write_text("true\n")
    (folder / "gold.csv").write_text("x\n")
    return top


def changed(**fields: Any) -> str:
    return json.dumps({**GOOD, **fields})


def judged(**fields: Any) -> str:
    return changed(evaluator={**GOOD["evaluator"], **fields})


@needs_checkout
def test_all_real_tasks_parse_and_say_what_they_lack() -> None:
    summaries = open_source(CHECKOUT).list()
    assert len(summaries) >= 44
    present = [summary for summary in summaries if "jupyter" in summary.related_apps and summary.instruction]
    assert len(present) == 44
    for summary in present:
        assert summary.wording in ("abstract", "verbose")
        assert (summary.runnable, summary.error) == (True, "")


@needs_checkout
@pytest.mark.parametrize("pair", PAIRS)
def test_the_pairs_of_this_version_are_runnable_and_solved(pair: tuple[str, str]) -> None:
    source = open_source(CHECKOUT)
    tasks = [source.load(prefix) for prefix in pair]
    assert [task.counterpart for task in tasks] == [tasks[1].id, tasks[0].id]
    assert {task.wording for task in tasks} == {"abstract", "verbose"}
    assert tasks[0].solution == tasks[1].solution
    assert tasks[0].solution is not None
    assert "final_answer(" in read_cells(tasks[0].solution)[-1]


@needs_checkout
def test_a_real_notebook_task_keeps_its_meaning() -> None:
    task = open_source(CHECKOUT).load("1fe7d03d")
    assert [type(step) for step in task.setup] == [CopyStep, BrowserStep, ScriptStep, LaunchStep]
    assert task.template == "jupyter"
    assert not task.network
    assert isinstance(task.evaluator.checks[0], CompareNotebookOutputs)
    assert open_source(CHECKOUT).load("2ed53418").template == "desktop"


@needs_checkout
def test_the_real_evaluators_keep_their_meaning() -> None:
    source = open_source(CHECKOUT)
    text = source.load("224009fd").evaluator.checks[0]
    assert isinstance(text, CompareTextFile)
    assert text.options.ignore_blanks
    tab = source.load("910797bf").evaluator.checks[0]
    assert isinstance(tab, IsExpectedUrlPatternMatch)
    assert (tab.result.scheme, len(tab.expected.patterns)) == ("http://", 2)
    executed = source.load("4f9794ae").evaluator
    assert isinstance(executed.checks[0], IsJupyterCellExecuted)
    assert [type(step) for step in executed.post_setup] == [ScriptStep, ActivateWindowStep, ExecuteStep]
    either = source.load("214d5a3c").evaluator
    assert (len(either.checks), either.conjunction) == (2, "or")


def test_a_whole_task_is_read(tmp_path: Path) -> None:
    task = open_source(make_checkout(tmp_path, changed())).load("t")
    assert task.setup == (ScriptStep(source=Path(FOLDER, "init.sh"), target="/home/user/init.sh"),)
    assert (task.template, task.wording, task.root) == ("desktop", "abstract", tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"id": ', "broken JSON at line 1"),
        ("[" * 100_000, "nested too deep"),
        ("[]", "top level"),
        ("{}", "id: Field required"),
        (changed(id="t2"), "calls itself 't2'"),
        (changed(instruction=""), "instruction"),
        (changed(config=[{"type": "fly", "parameters": {}}]), "needs set-up step fly"),
        (changed(config=[{"type": "launch", "parameters": {}}]), "without 'command'"),
        (changed(config=[{"type": "launch", "parameters": {"command": []}}]), "command"),
        (changed(config=[{"type": "google_chrome_browser", "parameters": {"debugging_port": 1}}]), "debugging_port"),
        (changed(config=[{"type": "google_chrome_browser", "parameters": {"incognito": True}}]), "with incognito"),
        (
            changed(
                config=[{"type": "copyfile_from_host_to_guest", "parameters": {"src": "http://x/y", "dest": "/y"}}]
            ),
            "needs to download http://x/y",
        ),
        (
            changed(
                config=[{"type": "copyfile_from_host_to_guest", "parameters": {"src": "/etc/passwd", "dest": "/y"}}]
            ),
            "stay inside",
        ),
        (
            changed(config=[{"type": "copyfile_from_host_to_guest", "parameters": {"src": "../../x", "dest": "/y"}}]),
            "stay inside",
        ),
        (
            changed(
                config=[{"type": "copyfile_from_host_to_guest", "parameters": {"src": f"{FOLDER}/lost", "dest": "/y"}}]
            ),
            "lost is missing",
        ),
        (
            changed(config=[{"type": "copyfile_from_host_to_guest", "parameters": {"src": 5, "dest": "/y"}}]),
            "source",
        ),
        (judged(func="guess"), "needs metric guess"),
        (judged(func=["compare_csv"] * 2, result=[{}]), "2 metrics but 1"),
        (judged(result={"type": "telepathy"}), "needs getter telepathy"),
        (judged(result={"type": "vm_file"}), "without 'path'"),
        (judged(result={"type": "vm_file", "path": "/a", "dest": "a", "multi": True}), "path is no list"),
        (judged(result={"type": "vm_file", "path": ["/a", "/b"], "multi": True, "gives": [0, 1]}), "gives 2 files"),
        (judged(result={"type": "vm_file", "path": ["/a"], "multi": True, "gives": "0"}), "gives is no list"),
        (judged(result={"type": "vm_file", "path": "/a", "time_suffix": True}), "with time_suffix"),
        (judged(result={}), "names no result getter"),
        (judged(expected=None), "names no expected getter"),
        (judged(expected={"type": "rule", "rules": {"expected": []}}), "where its metric wants a file"),
        (judged(func="check_include_exclude"), "in the name of a file"),
        (judged(func="compare_text_file", options={"ignore_lines": True}), "ignore_lines"),
        (
            judged(func="is_jupyter_cell_executed", expected={"type": "rule", "rules": {"expected": [1]}}),
            "excepts cells",
        ),
        (
            judged(func="is_expected_url_pattern_match", result={"type": "active_tab_info", "goto_prefix": "ftp://"}),
            "scheme",
        ),
        (judged(result={"type": "vm_file", "path": "Desktop/x"}), "must be absolute"),
        (judged(expected={"type": "rule", "rules": {"include": []}}), "wants a file"),
        (judged(func="is_jupyter_cell_executed", expected={"type": "rule", "rules": 5}), "rules are no mapping"),
        (judged(expected={"type": "local_file", "path": f"{FOLDER}/gone.csv"}), "gone.csv is missing"),
        (judged(options={"fuzzy": True}), "fuzzy"),
        (judged(postconfig=[{"type": "sleep", "parameters": {"seconds": -1}}]), "duration_s"),
        (judged(postconfig=[{"type": "execute", "parameters": {"command": "a 'b"}}]), "no shell could split"),
        (judged(postconfig=[{"type": "execute", "parameters": {"command": ["a"], "until": {}}}]), "with until"),
        (judged(postconfig=[{"type": "activate_window", "parameters": {"window_name": ""}}]), "title"),
        (judged(conj="xor"), "conj"),
        (judged(surprise=1), "surprise"),
    ],
)
def test_a_broken_task_names_task_and_place(tmp_path: Path, text: str, said: str) -> None:
    source = open_source(make_checkout(tmp_path, text))
    with pytest.raises(TaskError) as caught:
        source.load("t1")
    message = str(caught.value)
    assert said in message
    assert "t1" in message
    assert "\n" not in message
    [summary] = source.list()
    assert (summary.runnable, summary.error) == (False, message)


def test_a_task_folder_without_its_json_is_named(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path, changed())
    (checkout / FOLDER / "t1.json").unlink()
    with pytest.raises(TaskError, match=r"t1\.json cannot be read"):
        open_source(checkout).load("t1")


@pytest.mark.parametrize("index", ["[", "- 1", "t1: ../../secret.py", "t1: lost.py"])
def test_a_broken_index_of_solutions_is_refused_and_hides_no_task(tmp_path: Path, index: str) -> None:
    solutions = tmp_path / "solutions"
    solutions.mkdir()
    (solutions / "index.yaml").write_text(index)
    source = Spider2VTasks(make_checkout(tmp_path / "checkout", changed()), solutions)
    with pytest.raises(ConfigError, match=r"index\.yaml"):
        source.load("t1")
    assert [summary.id for summary in source.list()] == ["t1"]
