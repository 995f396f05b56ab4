"""Guards the main job: in a real machine a task's solution scores 1, doing nothing scores 0."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deskfork.sandbox.provider import VmProvider

ROOT = Path(__file__).parents[2]
SPIDER2V = Path(os.environ.get("SPIDER2V") or ROOT.parent / "shared" / "spider2-v")
SPIDER2V_TASK = "2ed53418-f813-479f-b8a0-134bfebec393"

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("qemu")]


def scores(deskfork: Callable[..., Any], out: Path, agent: str, *options: str | Path) -> dict[str, float | None]:
    """Run `agent`; return the score of each task."""
    done = deskfork(
        "run", "start", "--agent", agent, "--provider", "qemu", "--json", "--out", out, *options, timeout_s=600
    )
    assert done.out, done.err
    report = done.json()
    unfinished = {trial["task"]: trial for trial in report["trials"] if trial["status"] != "completed"}
    assert unfinished == {}
    assert done.code == 0, done.err
    return {trial["task"]: trial["score"] for trial in report["trials"]}


@pytest.mark.parametrize(("agent", "score"), [("oracle", 1.0), ("null", 0.0)])
def test_the_projects_own_tasks(
    qemu: VmProvider, deskfork: Callable[..., Any], tmp_path: Path, agent: str, score: float
) -> None:
    found = scores(deskfork, tmp_path, agent)
    assert len(found) >= 3
    assert set(found.values()) == {score}, found


@pytest.mark.skipif(not SPIDER2V.is_dir(), reason="no Spider2-V checkout: give one by SPIDER2V=PATH")
@pytest.mark.parametrize(("agent", "score"), [("oracle", 1.0), ("null", 0.0)])
def test_a_task_of_spider2v(
    qemu: VmProvider, deskfork: Callable[..., Any], tmp_path: Path, agent: str, score: float
) -> None:
    found = scores(deskfork, tmp_path, agent, "--source", SPIDER2V, "--tasks", SPIDER2V_TASK[:8])
    assert found == {SPIDER2V_TASK: score}
