"""Guards the benchmark: in real machines each of the 44 tasks is solved by its solution, and by nothing else.

A commit's tests take a third of the tasks, half of it with each provider, and another third by the next commit; that
nothing else solves them they try with `qemu` alone. `make test-all` takes all of them with both.
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deskfork.sandbox.provider import VmProvider
from deskfork.tasks.load import open_source
from deskfork.tasks.solution import read_cells

ROOT = Path(__file__).parents[2]
SPIDER2V = Path(os.environ.get("SPIDER2V") or ROOT.parent / "shared" / "spider2-v")
SHARES = 6
TAKES_ALL = bool(os.environ.get("DESKFORK_ALL_TASKS"))
TIMEOUT_S = 3 * 3600.0

pytestmark = [
    pytest.mark.vm,
    pytest.mark.timeout(TIMEOUT_S + 60),
    pytest.mark.skipif(not SPIDER2V.is_dir(), reason="no Spider2-V checkout: give one by SPIDER2V=PATH"),
]


def share(provider: str) -> list[str]:
    """Return the tasks whose turn it is."""
    tasks = [task.id for task in open_source(SPIDER2V).list() if task.runnable]
    if TAKES_ALL:
        return tasks
    counted = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    turn = int(counted.stdout) + SHARES // 2 * (provider == "docker")
    return tasks[turn % SHARES :: SHARES]


@pytest.mark.parametrize(("agent", "score"), [("oracle", 1.0), ("null", 0.0)])
def test_tasks_of_spider2v(
    provider: VmProvider, deskfork: Callable[..., Any], tmp_path: Path, agent: str, score: float
) -> None:
    if agent == "null" and provider.name != "qemu" and not TAKES_ALL:
        pytest.skip("the null agent has its turn with qemu; `make test-all` takes both")
    wanted = share(provider.name)
    options = ("--source", SPIDER2V, "--tasks", ",".join(wanted), "--agent", agent, "--provider", provider.name)
    # One at a time: two cores do not solve two tasks at once any sooner, and guests' own deadlines are met.
    done = deskfork("run", "start", *options, "--json", "--out", tmp_path, "--parallel", "1", timeout_s=TIMEOUT_S)
    assert done.out, done.err
    found = {
        trial["task"]: (trial["status"], trial["score"], trial["strict_score"], trial["reason"])
        for trial in done.json()["trials"]
    }
    assert sorted(found) == sorted(wanted)
    assert {task: got for task, got in found.items() if got[:3] != ("completed", score, score)} == {}
    assert done.code == 0, done.err


def test_a_save_that_jupyterlab_asks_about_goes_through(
    qemu: VmProvider, deskfork: Callable[..., Any], tmp_path: Path
) -> None:
    *begin, clear, answer = read_cells(ROOT / "evaluation_examples" / "spider2v" / "solutions" / "clear-outputs.py")
    # JupyterLab takes the file for somebody else's, as it does with its own where the server's replies come late.
    touch = "time.sleep(1)\npath.write_text(path.read_text() + ' ')"
    steps = tmp_path / "steps.jsonl"
    steps.write_text("".join(json.dumps({"code": code}) + "\n" for code in (*begin, touch, clear, answer)))
    options = ("--source", SPIDER2V, "--tasks", "575a50fd", "--agent", f"replay:{steps}", "--provider", "qemu")
    done = deskfork("run", "start", *options, "--json", "--out", tmp_path / "runs", timeout_s=900)
    assert done.code == 0, done.err
    [trial] = done.json()["trials"]
    assert (trial["status"], trial["score"], trial["strict_score"]) == ("completed", 1.0, 1.0), trial
