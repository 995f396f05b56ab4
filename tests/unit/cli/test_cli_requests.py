"""Guards the exit codes and that data, and nothing else, is on stdout; one sentence on stderr, no traceback."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deskfork.cli.errors import exit_code, sentence
from deskfork.core.errors import BootTimeout, EvaluationError, TaskError, TransportError

Command = Callable[..., Any]


def fake_run(source: Path, *more: str) -> list[str]:
    out = str(source.parent / "runs")
    return ["run", "start", "--source", str(source), "--provider", "fake", "--out", out, *more]


def test_a_run_is_one_json_object_that_show_repeats(deskfork: Command, source: Path) -> None:
    told = deskfork(*fake_run(source, "--agent", "oracle", "--tasks", "easy,easier", "--json"))
    assert told.code == 0
    run = told.json()
    assert [(t["task"], t["agent"], t["status"], t["score"], t["steps"]) for t in run["trials"]] == [
        ("easy", "oracle", "completed", 1.0, 1),
        ("easier", "oracle", "completed", 1.0, 1),
    ]
    assert all(trial["duration_s"] > 0 for trial in run["trials"])
    shown = deskfork("run", "show", run["run_dir"], "--json")
    assert shown.code == 0
    assert sorted(map(str, shown.json()["trials"])) == sorted(map(str, run["trials"]))
    assert "2 trials" in told.err
    table = deskfork("run", "show", run["run_dir"])
    assert "mean score 1.000 over 2 of 2 trials" in table.out
    assert table.err == ""


def test_a_resolved_configuration_runs_again(deskfork: Command, source: Path) -> None:
    first = deskfork(*fake_run(source, "--agent", "null", "--tasks", "easy", "--max-steps", "3", "--json")).json()
    again = deskfork("run", "start", Path(first["run_dir"]) / "run.yaml", "--agent", "oracle", "--json")
    assert [trial["score"] for trial in again.json()["trials"]] == [1.0]
    assert again.json()["run_dir"] != first["run_dir"]
    assert "steps: 3" in (Path(again.json()["run_dir"]) / "run.yaml").read_text()


def test_an_infrastructure_failure_still_prints_results(deskfork: Command, source: Path) -> None:
    (source / "easy" / "check.sh").write_text("exit 1\n")
    task = source / "easy" / "task.yaml"
    task.write_text(task.read_text() + "setup: [{type: script, source: check.sh, target: /home/user/check.sh}]\n")
    told = deskfork(*fake_run(source, "--agent", "oracle", "--json"))
    assert told.code == 3
    by_task = {trial["task"]: trial for trial in told.json()["trials"]}
    assert (by_task["easy"]["status"], by_task["easy"]["score"]) == ("infra_error", None)
    assert by_task["easier"]["score"] == 1.0


def test_all_leaves_out_what_cannot_run_and_says_so(deskfork: Command, source: Path) -> None:
    (source / "easy" / "gold.csv").unlink()
    told = deskfork(*fake_run(source, "--agent", "oracle", "--json"))
    assert told.code == 0
    assert [trial["task"] for trial in told.json()["trials"]] == ["easier"]
    assert "gold.csv" in told.json()["skipped"]["easy"]
    assert "skipped" in told.err


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["--agent", "nobody"], "nobody"),
        (["--agent", "code"], "--model"),
        (["--agent", "oracle", "--model", "litellm:x"], "--model"),
        (["--agent", "replay:/no/such"], "/no/such"),
        (["--agent", "oracle", "--tasks", "eas"], "ambiguous"),
        (["--agent", "oracle", "--tasks", "nothing"], "nothing"),
        (["--agent", "oracle", "--repeats", "0"], "repeats"),
        (["--agent", "oracle", "--max-steps", "-1"], "limits.steps"),
        (["--agent", "oracle", "--provider", "cloud"], "provider"),
        (["--agent", "oracle", "/no/such.yaml"], "/no/such.yaml"),
        (["--agent", "oracle", "--agent", "oracle"], "two agents"),
        (["--agent", "oracle", "--parallel", "60000"], "parallel"),
        (["--agent", "oracle", "--parallel", "many"], "parallel"),
        (["--agent", "oracle", "--budget-tokens", "0"], "budget.tokens"),
        ([], "--agent"),
        (["--agent"], "--agent"),
        (["--agnet", "oracle"], "--agnet"),
    ],
)
def test_a_wrong_request_ends_in_one_sentence_and_starts_nothing(
    deskfork: Command, source: Path, more: list[str], named: str
) -> None:
    told = deskfork(*fake_run(source, *more))
    assert told.code == 2
    assert named in told.err
    assert told.err.startswith("deskfork: ")
    assert told.err.count("\n") == 1
    assert told.out == ""
    assert not (source.parent / "runs").exists()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("agents: [", "no YAML"),
        ("- a", "no keys"),
        ("agents: [oracle]\nlimits: 3\n", "limits"),
        ("agents: oracle\n", "agents"),
        ("agents: [null]\n", "quoted"),
        ("agents: [oracle]\nagent: oracle\n", "agent"),
        ("agnt: oracle", "--agent"),
    ],
)
def test_a_broken_configuration_is_named(deskfork: Command, tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "run.yaml").write_text(text)
    told = deskfork("run", "start", tmp_path / "run.yaml", "--max-steps", "2")
    assert (told.code, named in told.err, told.err.count("\n")) == (2, True, 1)


def test_a_named_task_that_is_broken_refuses_the_run(deskfork: Command, source: Path) -> None:
    (source / "easy" / "task.yaml").write_text("instruction: [")
    told = deskfork(*fake_run(source, "--agent", "oracle", "--tasks", "easy"))
    assert told.code == 2
    assert "task.yaml" in told.err


@pytest.mark.parametrize("agent", ["oracle", "null"])
def test_a_source_that_holds_no_tasks_is_refused(deskfork: Command, tmp_path: Path, agent: str) -> None:
    told = deskfork(*fake_run(tmp_path, "--agent", agent))
    assert (told.code, str(tmp_path) in told.err) == (2, True)


def test_the_projects_own_tasks_are_the_default(deskfork: Command) -> None:
    assert len(deskfork("task", "list", "--json").json()) >= 3


def test_showing_what_is_no_run_or_is_corrupt_names_it(deskfork: Command, source: Path) -> None:
    told = deskfork("run", "show", source)
    assert (told.code, str(source) in told.err) == (2, True)
    run = deskfork(*fake_run(source, "--agent", "null", "--tasks", "easy", "--json")).json()
    result = Path(run["run_dir"]) / run["trials"][0]["folder"] / "result.json"
    result.write_text("{")
    told = deskfork("run", "show", run["run_dir"])
    assert (told.code, str(result) in told.err, told.out) == (2, True, "")


def test_exit_codes_follow_the_tree_of_errors() -> None:
    errors = [RuntimeError(), TaskError(), BootTimeout(), TransportError(), EvaluationError(), KeyboardInterrupt()]
    assert [exit_code(error) for error in errors] == [1, 2, 3, 3, 3, 130]


def test_an_error_is_one_line_and_its_trace_is_there_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sentence(TaskError("task x\nis broken")) == "deskfork: task x is broken"
    assert "DESKFORK_DEBUG=1" in sentence(RuntimeError("boom"))
    monkeypatch.setenv("DESKFORK_DEBUG", "1")
    assert "TaskError: task x" in sentence(TaskError("task x"))
