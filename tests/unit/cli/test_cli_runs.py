"""Guards `run plan`, `run resume` and budgets as commands: exit codes, and data alone on stdout."""

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from deskfork.core.waiting import Deadline, wait_until

Command = Callable[..., Any]
TIMEOUT_S = 60


def common(source: Path) -> list[str]:
    return ["--source", str(source), "--provider", "fake", "--out", str(source.parent / "runs")]


def test_a_plan_starts_nothing_and_is_one_json_object(deskfork: Command, source: Path) -> None:
    told = deskfork("run", "plan", "--agent", "oracle", "--agent", "null", "--repeats", "2", *common(source), "--json")
    assert told.code == 0, told.err
    plan = told.json()
    assert [(trial["task"], trial["agent"], trial["repeat"]) for trial in plan["trials"][:4]] == [
        ("easier", "oracle", 0),
        ("easier", "null", 0),
        ("easy", "oracle", 0),
        ("easy", "null", 0),
    ]
    assert (len(plan["trials"]), plan["max_cost_usd"]) == (8, 0.0)
    table = deskfork("run", "plan", "--agent", "null", *common(source))
    assert (table.code, "2 trials: 2 tasks, 1 agents, 1 at a time" in table.out, table.err) == (0, True, "")
    assert not (source.parent / "runs").exists()


def test_a_run_file_is_planned_and_started_alike(deskfork: Command, source: Path) -> None:
    file = source.parent / "run.yaml"
    file.write_text(yaml.safe_dump({"agents": ["oracle", {"kind": "null", "name": "idle"}], "tasks": "easy,easier"}))
    planned = deskfork("run", "plan", file, *common(source), "--json").json()
    started = deskfork("run", "start", file, *common(source), "--parallel", "auto", "--json")
    assert started.code == 0, started.err
    key = ("task", "agent", "repeat")
    assert sorted(tuple(t[k] for k in key) for t in started.json()["trials"]) == sorted(
        tuple(t[k] for k in key) for t in planned["trials"]
    )


def test_a_killed_run_is_resumed_to_its_end(deskfork: Command, source: Path) -> None:
    run = deskfork("run", "start", "--agent", "oracle", *common(source), "--json").json()
    cut = Path(run["run_dir"]) / run["trials"][0]["folder"] / "result.json"
    cut.unlink()
    told = deskfork("run", "resume", run["run_dir"], "--json")
    assert told.code == 0, told.err
    assert [(trial["score"], trial["attempts"]) for trial in told.json()["trials"]] == [(1.0, 2), (1.0, 1)]
    assert "2 trials, 1 of them over" in told.err


def test_a_run_that_changed_or_is_none_is_not_resumed(deskfork: Command, source: Path) -> None:
    run = deskfork("run", "start", "--agent", "null", *common(source), "--json").json()
    (source / "easy" / "gold.csv").write_text("other\n")
    told = deskfork("run", "resume", run["run_dir"])
    assert (told.code, told.out, "task easy is not what it was" in told.err) == (2, "", True)
    assert told.err.count("\n") == 1
    assert deskfork("run", "resume", source).code == 2


def test_a_budget_that_is_reached_ends_a_run_in_good_order(deskfork: Command, source: Path) -> None:
    (source / "easier" / "solution.py").write_text("# %%\nimport time\ntime.sleep(60)\n# %%\n1\n")
    told = deskfork("run", "start", "--agent", "oracle", "--budget-seconds", "3", *common(source), "--json")
    assert told.code == 0, told.err
    assert [(trial["task"], trial["status"]) for trial in told.json()["trials"]] == [("easier", "limit")]
    assert "1 trials not begun: run budget of 3 seconds reached" in told.err


def test_the_second_interrupt_ends_a_run_at_once_and_it_can_be_resumed(
    spawn: Callable[..., Any], deskfork: Command, source: Path
) -> None:
    # A cell that ignores its interrupt: the first signal has to wait for it.
    stubborn = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" + "time.sleep(1)\n" * 40
    replay = source.parent / "stubborn.jsonl"
    replay.write_text(json.dumps({"code": "1"}) + "\n" + json.dumps({"code": stubborn}) + "\n")
    arguments = ["run", "start", "--agent", f"replay:{replay}", "--tasks", "easy", "--parallel", "2", *common(source)]
    with spawn(arguments) as process:

        def has_begun() -> bool:
            return any(p.read_text() for p in (source.parent / "runs").glob("*/trials/*/*/*/*/trajectory.jsonl"))

        assert wait_until(has_begun, Deadline.after(TIMEOUT_S))
        process.send_signal(signal.SIGINT)
        wait_until(lambda: None, Deadline.after(0.7))
        asked_at = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
        assert time.monotonic() - asked_at < 3
    assert process.returncode == 130
    replay.write_text(replay.read_text())
    (run_dir,) = (source.parent / "runs").iterdir()
    shown = deskfork("run", "show", run_dir, "--json").json()["trials"]
    assert [trial["status"] for trial in shown] in (["cancelled"], ["unfinished"])
