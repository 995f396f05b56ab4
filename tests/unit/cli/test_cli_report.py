"""Guards `report show` and `report compare`: exit codes, JSON, the page, and what other commands wait for."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[3] / "notebooks" / "run_report.ipynb"
Command = Callable[..., Any]


@pytest.fixture
def runs(deskfork: Command, source: Path, tmp_path: Path) -> list[Path]:
    """Two runs with the fake provider, of the oracle and of null."""
    for agent in ("oracle", "null"):
        told = ["--agent", agent, "--provider", "fake", "--source", source, "--out", tmp_path / agent, "--repeats", "2"]
        assert deskfork("run", "start", "--tasks", "all", *told).code == 0
    return [folder for agent in ("oracle", "null") for folder in (tmp_path / agent).iterdir()]


def test_a_run_is_shown(deskfork: Command, runs: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    answer = deskfork("report", "show", runs[0], "--html", page)
    assert answer.code == 0
    assert "100.0 % [51.0, 100.0] 4/4" in answer.out
    assert page.read_text().startswith("<!doctype html>")
    assert str(page) in answer.err
    report = deskfork("report", "show", runs[0], "--json").json()
    assert [(agent["agent"], agent["kind"], agent["scored"]) for agent in report["agents"]] == [("oracle", "oracle", 4)]
    assert [each["k"] for each in report["agents"][0]["passes"]] == [1, 2]
    assert deskfork("report", "show", runs[0], "--markdown").out.startswith("# Report on ")


def test_runs_are_compared(deskfork: Command, runs: list[Path]) -> None:
    report = deskfork("report", "compare", *runs, "--json").json()
    assert [(found["first"], found["second"], found["verdict"]) for found in report["comparisons"]] == [
        ("null", "oracle", "score"),
        ("null", "oracle", "strict"),
    ]
    assert report["comparisons"][0]["mean"]["difference"] == -1.0
    assert not [warning for warning in report["warnings"] if "differ" in warning]
    assert "null - oracle" in deskfork("report", "compare", *runs).out


def test_what_cannot_be_done_is_refused(deskfork: Command, runs: list[Path], tmp_path: Path) -> None:
    assert deskfork("report", "show", tmp_path).code == 2
    assert deskfork("report", "compare", runs[0]).code == 2
    assert deskfork("report", "compare", runs[0], runs[0]).code == 2
    answer = deskfork("report", "show", runs[0], "--html", tmp_path / "no" / "page.html")
    assert (answer.code, answer.out) == (2, "")
    assert "cannot be written" in answer.err


def test_no_other_command_waits_for_the_statistics() -> None:
    loaded = "import sys; import deskfork.cli.main; print(*sys.modules)"
    names = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert not {"scipy", "statsmodels", "matplotlib", "pandas", "jinja2"} & set(names.split())


def test_the_notebook_redraws_the_figures(runs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESKFORK_RUNS", os.pathsep.join(map(str, runs)))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    pictures = [
        output for cell in notebook.cells for output in cell.get("outputs", []) if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == 4
