"""Guards the action spaces end to end: in each, scripts of raw model replies solve tasks of Spider2-V in real machines.

A commit's tests take half of the scripts, the next one's the other half; `make test-all` takes all. What
`test_study.py` runs at each commit is left to it.
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deskfork.sandbox.provider import VmProvider

ROOT = Path(__file__).parents[2]
SPIDER2V = Path(os.environ.get("SPIDER2V") or ROOT.parent / "shared" / "spider2-v")
POLICIES = ROOT / "evaluation_examples" / "spider2v" / "policies"
TASKS = {"remove-kernel": "2ed53418", "clear-outputs": "575a50fd", "count-games": "00b43a0a"}
GUI_ALONE = {("remove-kernel", "computer"), ("clear-outputs", "pyautogui"), ("clear-outputs", "computer_13")}
ALL = sorted((path.parent.name, path.stem) for path in POLICIES.glob("*/*.yaml"))

pytestmark = [
    pytest.mark.vm,
    pytest.mark.skipif(not SPIDER2V.is_dir(), reason="no Spider2-V checkout: give one by SPIDER2V=PATH"),
]

STUDIED = {("remove-kernel", space) for space in ("code+gui", "code", "pyautogui", "computer_13")}


def whose_turn() -> list[tuple[str, str]]:
    if os.environ.get("DESKFORK_ALL_TASKS"):
        return ALL
    counted = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [script for script in ALL if script not in STUDIED][int(counted.stdout) % 2 :: 2]


def test_each_action_space_has_scripts_for_two_tasks() -> None:
    spaces = {space for _, space in ALL}
    assert spaces == {"code+gui", "code", "pyautogui", "computer_13", "computer", "computer+tools"}
    assert all(sum(space == other for _, other in ALL) >= 2 for space in spaces)


@pytest.mark.parametrize(("policy", "space"), whose_turn())
def test_a_script_solves_a_task(
    qemu: VmProvider, deskfork: Callable[..., Any], tmp_path: Path, policy: str, space: str
) -> None:
    script = POLICIES / policy / f"{space}.yaml"
    done = deskfork(
        *("run", "start", "--source", SPIDER2V, "--tasks", TASKS[policy], "--provider", "qemu", "--max-steps", "30"),
        *("--agent", space, "--model", f"scripted:{script}", "--json", "--out", tmp_path),
        timeout_s=900,
    )
    assert done.code == 0, done.err
    [trial] = done.json()["trials"]
    assert (trial["status"], trial["score"], trial["strict_score"]) == ("completed", 1.0, 1.0), trial
    [trajectory] = tmp_path.glob("*/trials/*/*/*/*/trajectory.jsonl")
    steps = [json.loads(line) for line in trajectory.read_text().splitlines()]
    if policy == "remove-kernel" and space != "code+gui":
        assert steps[0]["refused"]
        assert not any(step["refused"] for step in steps[1:])
    if (policy, space) in GUI_ALONE:
        assert {kind for step in steps for kind in step["lines"]} <= {"gui", "wait"}
    assert json.loads((trajectory.parent / "result.json").read_text())["self_report"] == "done"
