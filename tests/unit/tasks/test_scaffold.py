"""Guards new tasks: half a task left behind, one that overwrites another, a format that its page does not tell."""

from pathlib import Path
from typing import Any, Literal, get_args

import pytest

from deskfork.core.errors import ConfigError
from deskfork.tasks.checks import Check, Nothing
from deskfork.tasks.load import open_source
from deskfork.tasks.own import own_examples
from deskfork.tasks.scaffold import make_task
from deskfork.tasks.solution import read_cells
from deskfork.tasks.steps import SetupStep


@pytest.mark.parametrize("template", ["desktop", "jupyter"])
def test_a_new_task_can_be_loaded_at_once(tmp_path: Path, template: Literal["desktop", "jupyter"]) -> None:
    folder = make_task(tmp_path / "mine", "count-orders", template)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["count-orders"]
    source = open_source(tmp_path / "mine")
    [summary] = source.list()
    assert (summary.runnable, summary.template, summary.has_solution) == (True, template, True)
    solution = source.load("count").solution
    assert solution is not None
    assert "final_answer(" in read_cells(solution)[-1]
    assert "## Solutions" in (folder / "README.md").read_text()


def test_the_solution_of_a_new_task_writes_its_gold_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_task(tmp_path, "t")
    desktop = tmp_path / "home" / "Desktop"
    desktop.mkdir(parents=True)
    (desktop / "orders.csv").write_bytes((folder / "orders.csv").read_bytes())
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    names: dict[str, Any] = {"final_answer": lambda text: None}
    for cell in read_cells(folder / "solution.py"):
        exec(cell, names)
    assert (desktop / "counts.csv").read_bytes() == (folder / "gold.csv").read_bytes()


@pytest.mark.parametrize("task", ["", ".", "..", "../x", "a/b", "-x", ".x", "a b", "ä", "x\n", "x" * 65])
def test_what_is_no_id_is_refused(tmp_path: Path, task: str) -> None:
    with pytest.raises(ConfigError, match="is no id"):
        make_task(tmp_path / "mine", task)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "u").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    for task in ("t", "u"):
        with pytest.raises(ConfigError, match="is there already"):
            make_task(tmp_path, task)
    with pytest.raises(ConfigError, match="cannot be written"):
        make_task(tmp_path / "file", "t")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "t", "u"]


def test_the_page_tells_every_step_metric_and_getter() -> None:
    page = (own_examples() / "README.md").read_text()
    # What deskfork supplies to upstream's tasks by itself is not for task files.
    for kind in (kind for kind in get_args(get_args(SetupStep)[0]) if kind.__name__ != "SupplyStep"):
        assert f"| `{kind.model_fields['type'].default}` |" in page
        for key in set(kind.model_fields) - {"type", "debugging_port", "listening_port"}:
            assert f"`{key}`" in page
    for kind in get_args(get_args(Check)[0]):
        assert f"| `{get_args(kind.model_fields['metric'].annotation)[0]}` | `" in page
        for key in kind.model_fields["options"].annotation.model_fields:
            assert f"`{key}`" in page
    for getter in ("guest_file", "script_output", "active_tab", "host_file", "rule", "url_patterns", Nothing().type):
        assert f"- `{{type: {getter}" in page
