"""Guards `deskfork task`: exit codes, filters that miss, and tables that do not fit a terminal of 100 columns."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from deskfork.cli.task_text import render_list, render_task, short_id_chars
from deskfork.tasks.describe import describe_task
from deskfork.tasks.load import open_source
from deskfork.tasks.pairs import in_pairs

Command = Callable[..., Any]
ABSTRACT, VERBOSE = "aaaaaaaa-1111-4111-8111-111111111111", "00000000-2222-4222-8222-222222222222"
LONE = "aaaaaaaa-3333-4333-8333-333333333333"
INSTRUCTION = "Write the answer to every question of the questionnaire into answers.csv, in the order of their numbers."


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A pair and a task that needs an account; one more is only named in the index."""
    examples = tmp_path / "evaluation_examples/examples"
    fields: dict[str, dict[str, Any]] = {
        ABSTRACT: {"tags": ["gui", "abstract"], "counterpart": VERBOSE},
        VERBOSE: {"tags": ["gui", "verbose"], "counterpart": ABSTRACT},
        LONE: {"tags": ["cli", "account"], "related_apps": ["snowflake"]},
    }
    for task, more in fields.items():
        folder = examples / "jupyter" / task
        folder.mkdir(parents=True)
        (folder / "gold.csv").write_text("a\n")
        path = f"evaluation_examples/examples/jupyter/{task}/gold.csv"
        evaluator = {
            "func": "compare_csv",
            "result": {"type": "vm_file", "path": "/home/user/Desktop/answers.csv", "dest": "a.csv"},
            "expected": {"type": "local_file", "path": path},
        }
        text = INSTRUCTION + ("\nHere is how:\n1. Open it.\n" if task == VERBOSE else "")
        base = {"id": task, "instruction": text, "related_apps": ["jupyter"], "evaluator": evaluator}
        (folder / f"{task}.json").write_text(json.dumps({**base, **more}))
    (examples.parent / "test_all.json").write_text(json.dumps({"excel": ["bbbbbbbb-4444-4444-8444-444444444444"]}))
    return tmp_path


def listed(deskfork: Command, checkout: Path, *options: str) -> list[str]:
    told = deskfork("task", "list", "--source", checkout, "--json", *options)
    assert told.code == 0
    return [task["id"][:8] + task["id"][8:10] for task in told.json()]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([], ["aaaaaaaa-1", "00000000-2", "bbbbbbbb-4", "aaaaaaaa-3"]),
        (["--tags", "gui,verbose"], ["00000000-2"]),
        (["--tags", "gui", "--tags", "abstract"], ["aaaaaaaa-1"]),
        (["--app", "jupyter", "--wording", "verbose"], ["00000000-2"]),
        (["--tool", "excel"], ["bbbbbbbb-4"]),
        (["--evaluator", "compare_csv", "--runnable"], ["aaaaaaaa-1", "00000000-2"]),
        (["--id", "aaaaaaaa-3,0"], ["00000000-2", "aaaaaaaa-3"]),
        (["--id", "aaaa", "--id", "b", "--runnable"], ["aaaaaaaa-1"]),
        (["--tags", "cli", "--runnable"], []),
    ],
)
def test_filters_combine(deskfork: Command, checkout: Path, options: list[str], wanted: list[str]) -> None:
    assert listed(deskfork, checkout, *options) == wanted


def test_nothing_found_is_said_and_no_failure(deskfork: Command, checkout: Path) -> None:
    told = deskfork("task", "list", "--source", checkout, "--tags", "cli", "--runnable")
    assert (told.code, told.out, told.err) == (0, "", "no task is like that\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tags", "guii"], "did you mean gui?"),
        (["--tags", "gui,xyzzy"], "there are abstract, account, cli, gui, verbose"),
        (["--app", "emacs"], "there are excel, jupyter, snowflake"),
        (["--evaluator", "compare_csw"], "did you mean compare_csv?"),
        (["--id", "zz"], "no task's id begins with 'zz'"),
        (["--wording", "short"], "abstract"),
    ],
)
def test_unknown_values_are_refused_with_what_there_is(
    deskfork: Command, checkout: Path, options: list[str], said: str
) -> None:
    told = deskfork("task", "list", "--source", checkout, *options)
    assert (told.code, told.out) == (2, "")
    assert said in told.err


def test_what_is_wrong_with_the_index_is_said_beside_the_list(deskfork: Command, checkout: Path) -> None:
    (checkout / "evaluation_examples/test_all.json").write_text("[")
    told = deskfork("task", "list", "--source", checkout, "--json")
    assert (told.code, len(told.json())) == (0, 3)
    assert "test_all.json is broken JSON" in told.err


def test_the_table_has_one_line_a_task_at_100_columns(checkout: Path) -> None:
    tasks = in_pairs(open_source(checkout).list())
    text = io.StringIO()
    Console(file=text, width=100, force_terminal=False).print(render_list(tasks, [task.id for task in tasks]))
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    assert len(lines) == 1 + len(tasks)
    assert max(map(len, lines)) <= 100
    assert lines[1].startswith("aaaaaaaa-1  yes   abstract  desktop")
    assert lines[2].startswith("00000000-2  yes   verbose")
    assert lines[3].endswith("folder missing; LibreOffice")
    assert lines[4].endswith("account: Snowflake")


def test_ids_are_as_long_as_it_takes_to_tell_them_apart() -> None:
    assert short_id_chars([ABSTRACT, VERBOSE]) == 8
    assert short_id_chars([ABSTRACT, LONE]) == 10
    assert short_id_chars(["a", "b"]) == 8


def test_a_task_is_shown_whole(deskfork: Command, checkout: Path) -> None:
    shown = deskfork("task", "show", "aaaaaaaa-1", "--source", checkout)
    assert shown.code == 0
    for part in (ABSTRACT, f"{VERBOSE} (verbose): the same text; it adds 2 lines after it", INSTRUCTION, "compare_csv"):
        assert part in shown.out
    assert "gold.csv" in shown.out
    described = deskfork("task", "show", "0000", "--source", checkout, "--json").json()
    assert (described["id"], described["wording"], described["runnable"]) == (VERBOSE, "verbose", True)
    assert described["pair"]["difference"] == "the same text; it leaves out 2 lines after it"
    assert described["evaluator"]["checks"][0]["metric"] == "compare_csv"
    assert [file["size_bytes"] for file in described["files"]] == [2]
    assert described["solution_source"] is None


def test_a_task_that_cannot_run_is_shown_with_the_reason(deskfork: Command, checkout: Path) -> None:
    shown = deskfork("task", "show", "aaaaaaaa-3", "--source", checkout)
    assert (shown.code, "it needs an account at Snowflake" in shown.out) == (0, True)
    missing = deskfork("task", "show", "bbbb", "--source", checkout, "--json").json()
    assert (missing["runnable"], missing["needs"][0]["kind"]) == (False, "folder")


@pytest.mark.parametrize("wanted", ["aaaa", "no-such", ""])
def test_an_ambiguous_or_unknown_task_is_refused(deskfork: Command, checkout: Path, wanted: str) -> None:
    told = deskfork("task", "show", wanted, "--source", checkout)
    assert (told.code, told.out, told.err.count("\n")) == (2, "", 1)


def test_own_tasks_are_listed_and_shown_with_their_solution(deskfork: Command, source: Path) -> None:
    tasks = deskfork("task", "list", "--source", source, "--json").json()
    assert [(task["id"], task["runnable"]) for task in tasks] == [("easier", True), ("easy", True)]
    assert "easier" in deskfork("task", "list", "--source", source).out
    shown = deskfork("task", "show", "easie", "--source", source, "--json").json()
    assert (shown["id"], shown["instruction"]) == ("easier", "Write out.csv.")
    assert "out.csv" in shown["solution_source"]
    (source / "easy" / "solution.py").write_text("# nothing\n")
    broken = deskfork("task", "show", "easy", "--source", source)
    assert (broken.code, "has no cells" in broken.out) == (0, True)


def test_what_a_task_says_is_no_terminal_command(source: Path) -> None:
    task = source / "easy" / "task.yaml"
    task.write_text(task.read_text().replace("Write out.csv.", '"Write \\u001b[2J[bold]out.csv."'))
    text = io.StringIO()
    Console(file=text, width=100, force_terminal=True, color_system=None).print(
        render_task(describe_task(open_source(source), "easy"))
    )
    assert "\x1b[2J" not in text.getvalue()
    assert "[bold]out.csv" in text.getvalue()


def test_a_new_task_is_named_and_passes_its_check(deskfork: Command, tmp_path: Path) -> None:
    made = deskfork("task", "new", "count-orders", "--directory", tmp_path / "mine")
    assert (made.code, made.out) == (0, f"{tmp_path}/mine/count-orders\n")
    checked = deskfork("task", "check", "--source", tmp_path / "mine", "--provider", "fake", "--json")
    assert checked.code == 0
    [check] = checked.json()
    assert (check["solvable"], check["discriminating"], check["stable"]) == (True, True, True)
    again = deskfork("task", "new", "count-orders", "--directory", tmp_path / "mine")
    assert (again.code, again.out, again.err.count("\n")) == (2, "", 1)
    assert deskfork("task", "new", "t", "--directory", tmp_path, "--template", "windows").code == 2


def test_a_run_takes_the_wording_that_was_asked_for_and_reports_pairs(deskfork: Command, tmp_path: Path) -> None:
    for task, other, wording in (("one", "two", "abstract"), ("two", "one", "verbose")):
        deskfork("task", "new", task, "--directory", tmp_path / "mine")
        path = tmp_path / "mine" / task / "task.yaml"
        path.write_text(f"{path.read_text()}counterpart: {other}\nwording: {wording}\n")
    start = ["run", "start", "--source", tmp_path / "mine", "--provider", "fake", "--out", tmp_path / "runs"]
    verbose = deskfork(*start, "--agent", "null", "--wording", "verbose", "--json").json()
    assert [(trial["task"], trial["wording"]) for trial in verbose["trials"]] == [("two", "verbose")]
    assert verbose["pairs"] == []
    both = deskfork(*start, "--agent", "null", "--json").json()
    [pair] = both["pairs"]
    assert (pair["abstract"]["task"], pair["verbose"]["task"], pair["verbose"]["mean_strict_score"]) == (
        "one",
        "two",
        0.0,
    )
    markdown = deskfork("run", "show", both["run_dir"], "--markdown")
    assert "| one, two | null | 0.000 | 0.000 | 0.000 | 0.000 |" in markdown.out
    for more in (["--wording", "terse"], ["--tasks", "one", "--wording", "verbose"]):
        refused = deskfork(*start, "--agent", "null", *more)
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert "wording" in refused.err or "counterparts are two" in refused.err
