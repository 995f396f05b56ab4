"""Guards the meaning of upstream's steps and evaluators in the project's own words."""

from pathlib import Path
from typing import Any

import pytest
from checkouts import TASK, judged, step, write_checkout

from deskfork.tasks.checks import GuestFile
from deskfork.tasks.load import open_source
from deskfork.tasks.spider2v.foreign import ForeignStep
from deskfork.tasks.spider2v.steps import translate_step
from deskfork.tasks.steps import ActivateWindowStep, ExecuteStep, LaunchStep, SetupStep, SleepStep

GOLD = TASK["evaluator"]["expected"]


def made(kind: str, **parameters: Any) -> SetupStep:
    return translate_step(ForeignStep(**step(kind, **parameters)), "config.0")


def test_steps_keep_upstreams_meaning() -> None:
    assert made("sleep", seconds=2) == SleepStep(duration_s=2)
    assert made("activate_window", window_name="Lab", strict=True) == ActivateWindowStep(title="Lab", is_exact=True)
    assert made("launch", command="x 'a b'") == LaunchStep(command=("x", "'a", "b'"))


@pytest.mark.parametrize(
    ("parameters", "command"),
    [
        ({"command": ["~/x", "a b"]}, ("/home/user/x", "a b")),
        ({"command": "x 'a b'"}, ("x", "a b")),
        ({"command": "a | b", "shell": True}, ("/bin/sh", "-c", "a | b")),
        ({"command": ["echo $0", "b"], "shell": True}, ("/bin/sh", "-c", "echo $0", "b")),
    ],
)
def test_commands_are_split_as_upstreams_server_does(parameters: dict[str, Any], command: tuple[str, ...]) -> None:
    assert made("execute", **parameters) == ExecuteStep(command=command, timeout_s=300)
    assert made("command", **parameters) == made("execute", **parameters)


def test_lists_of_metrics_are_spread_over_their_getters(tmp_path: Path) -> None:
    evaluator = TASK["evaluator"]
    many = {key: [evaluator[key]] * 2 for key in ("func", "result", "expected")}
    fields = {"evaluator": {**many, "options": [None, {"ignore_order": True}], "conj": "or"}}
    task = open_source(write_checkout(tmp_path, {"jupyter/t1": fields})).load("t1")
    assert task.evaluator.conjunction == "or"
    assert [check.options.model_dump().get("ignore_order") for check in task.evaluator.checks] == [False, True]


@pytest.mark.parametrize(
    ("gives", "judged_file", "also"), [([1], "/b", ("/a", "/c")), ([2], "/c", ("/a", "/b")), (None, "/a", ("/b", "/c"))]
)
def test_one_of_several_guest_files_is_judged(
    tmp_path: Path, gives: list[int] | None, judged_file: str, also: tuple[str, ...]
) -> None:
    result = {"type": "vm_file", "path": ["/a", "/b", "/c"], "dest": ["a", "b", "c"], "multi": True}
    fields = judged("compare_csv", {**result, **({"gives": gives} if gives else {})}, GOLD)
    task = open_source(write_checkout(tmp_path, {"jupyter/t1": fields})).load("t1")
    assert task.evaluator.checks[0].result == GuestFile(path=judged_file, also=also)
