"""Guards the project's own tasks and their format: a broken task that hides the others, or ends in a traceback."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from deskfork.core.errors import ConfigError, TaskError
from deskfork.tasks.load import open_source, select
from deskfork.tasks.own import OwnTasks
from deskfork.tasks.solution import read_cells

GOOD: dict[str, Any] = {
    "instruction": "do it",
    "setup": [{"type": "copy", "source": "a.csv", "target": "/home/user/Desktop/a.csv"}],
    "evaluator": {
        "checks": [
            {
                "metric": "compare_csv",
                "result": {"type": "guest_file", "path": "/home/user/Desktop/b.csv"},
                "expected": {"type": "host_file", "path": "a.csv"},
            }
        ]
    },
}


def write_task(folder: Path, name: str, text: str) -> None:
    (folder / name).mkdir()
    (folder / name / "task.yaml").write_text(text)
    (folder / name / "a.csv").write_text("x\n")


def changed(**fields: Any) -> str:
    return yaml.safe_dump({**GOOD, **fields})


def check(**fields: Any) -> str:
    return changed(evaluator={"checks": [{**GOOD["evaluator"]["checks"][0], **fields}]})


def test_the_projects_own_tasks_are_complete() -> None:
    source = open_source(None)
    assert len(source.ids()) >= 3
    for summary in source.list():
        assert (summary.runnable, summary.error) == (True, "")
        solution = source.load(summary.id).solution
        assert solution is not None
        cells = read_cells(solution)
        assert "final_answer(" in cells[-1]
        assert not any("final_answer(" in cell for cell in cells[:-1])


def test_one_of_the_projects_own_tasks_is_gui_only() -> None:
    source = open_source(None)
    [task] = [source.load(summary.id) for summary in source.list() if "gui" in summary.tags]
    assert task.solution is not None
    code = task.solution.read_text()
    assert "pyautogui.write(" in code
    assert not any(word in code for word in ("write_text", "write_bytes", '"w"'))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("instruction: [", "broken YAML at line"),
        ("a: !!python/object:os.system x", "broken YAML"),
        ("- 1", "must be a mapping"),
        ("", "must be a mapping"),
        (changed(instruction=""), "instruction"),
        (changed(colour="red"), "colour"),
        (changed(id="x"), "'id'"),
        (changed(template="windows"), "template"),
        (changed(setup=[{"type": "fly"}]), "fly"),
        (changed(setup=[{"type": "supply", "source": "/etc/passwd", "target": "/home/user/x"}]), "supply"),
        (changed(setup=[{"type": "copy", "source": "/etc/passwd", "target": "/home/user/x"}]), "/etc/passwd"),
        (changed(setup=[{"type": "copy", "source": "../x", "target": "/home/user/x"}]), "stay inside"),
        (changed(setup=[{"type": "copy", "source": "a.csv", "target": "x"}]), "must be absolute"),
        (changed(setup=[{"type": "copy", "source": "a.csv", "target": "/home/../etc/x"}]), "must be absolute"),
        (changed(setup=[{"type": "copy", "source": "a.csv", "target": "/x\n"}]), "unprintable"),
        (changed(setup=[{"type": "copy", "source": "lost.csv", "target": "/x"}]), "lost.csv is missing"),
        (changed(setup=[{"type": "launch", "command": []}]), "command"),
        (check(metric="guess"), "guess"),
        (check(result={"type": "telepathy"}), "result"),
        (check(expected={"type": "host_file", "path": "gone.csv"}), "gone.csv is missing"),
        (check(options={"fuzzy": True}), "fuzzy"),
        (changed(evaluator={"checks": []}), "checks"),
        (changed(solution="none.py"), "none.py"),
        (changed(solution="../other/a.csv"), "is no file in"),
        (changed(solution=5), "5"),
        ("x: " + "[" * 3000, "YAML"),
    ],
)
def test_a_broken_task_names_task_place_and_way_out(tmp_path: Path, text: str, said: str) -> None:
    write_task(tmp_path, "bad", text)
    write_task(tmp_path, "other", changed())
    source = OwnTasks(tmp_path)
    with pytest.raises(TaskError) as caught:
        source.load("bad")
    message = str(caught.value)
    assert said in message
    assert "bad" in message
    assert "\n" not in message
    assert [(summary.id, summary.runnable) for summary in source.list()] == [("bad", False), ("other", True)]


def test_a_link_out_of_the_task_is_refused(tmp_path: Path) -> None:
    write_task(tmp_path, "t", changed())
    (tmp_path / "t" / "a.csv").unlink()
    (tmp_path / "t" / "a.csv").symlink_to("/etc/hostname")
    with pytest.raises(TaskError, match="link that leads out"):
        OwnTasks(tmp_path).load("t")


def test_ids_may_be_shortened_unless_ambiguous(tmp_path: Path) -> None:
    for name in ("alpha-1", "alpha-2", "beta"):
        write_task(tmp_path, name, changed())
    source = open_source(tmp_path)
    assert select(source, "be, alpha-2,beta") == ["beta", "alpha-2"]
    assert select(source, "all") == ["alpha-1", "alpha-2", "beta"]
    with pytest.raises(TaskError, match="alpha-1, alpha-2"):
        select(source, "alpha")
    with pytest.raises(TaskError, match="did you mean beta"):
        source.load("bata")
    with pytest.raises(TaskError, match="task list"):
        source.load("zzz")
    with pytest.raises(ConfigError, match="no task was named"):
        select(source, " , ")


def test_a_path_without_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        open_source(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="Spider2-V checkout"):
        open_source(tmp_path)
