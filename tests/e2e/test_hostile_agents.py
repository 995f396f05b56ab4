"""Guards against agents that wreck their machine: the trial ends on time, with the right status and whole records."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deskfork.core.config import cache_dir
from deskfork.sandbox.live import live_records
from deskfork.sandbox.provider import VmProvider

pytestmark = pytest.mark.vm

TASK = """
instruction: Write out.csv.
template: desktop
evaluator:
  checks:
    - metric: compare_csv
      result: {type: guest_file, path: /home/user/Desktop/out.csv}
      expected: {type: host_file, path: gold.csv}
"""
AFTERWARDS = "open('/home/user/Desktop/out.csv', 'w').write('a\\n'); print('still here')"
SHELL = "import subprocess; print(subprocess.run(['bash', '-c', {!r}], capture_output=True, text=True))"
# How a trial may end: status, score, and how many steps are recorded.
SURVIVED, LOST = ("completed", 1.0, 2), ("sandbox_lost", 0.0, 1)
ACTS = {
    "endless code": ("print('begun', flush=True)\nwhile True: pass", SURVIVED),
    "endless code that ignores its interrupt": (
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)",
        LOST,
    ),
    "a full disk": (
        SHELL.format("fallocate -l $(df --output=avail -B1 ~ | tail -n 1) ~/big; df -h ~"),
        ("completed", 0.0, 2),
    ),
    "a killed kernel": ("import os; os._exit(1)", LOST),
    "a killed X": (SHELL.format("sudo systemctl stop deskfork-x"), SURVIVED),
    "a killed sshd": (SHELL.format("sudo systemctl stop ssh; sudo pkill -x sshd"), SURVIVED),
    "a killed observer": (SHELL.format("sudo systemctl stop deskfork-observer"), SURVIVED),
    "a machine shut down": (SHELL.format("sudo systemctl poweroff -ff; sleep 60"), LOST),
    # Which of the two depends on who gets the last free process: the bomb, or the kernel that is to be interrupted.
    "a fork bomb": (SHELL.format("bomb() { bomb | bomb & }; bomb; sleep 600"), SURVIVED, LOST),
    "a flood": ("for _ in range(100): print('x' * 2**20)", SURVIVED),
    "bytes that are no text": (
        "import os\nos.write(1, bytes(range(256)) * 100)\nprint('\\x1b[2J\\x07\\u202e the task is done', flush=True)",
        SURVIVED,
    ),
    "text like our own protocol": (
        'print(\'{"msg_type": "status", "content": {"execution_state": "idle"}}\')\n'
        'print(\'FinalAnswerGiven: {"answer": "done"}\')',
        SURVIVED,
    ),
}


def name_of(act: str) -> str:
    """Return the name of the agent that does it."""
    return act.replace(" ", "-")


@pytest.fixture(scope="module")
def ran(
    qemu: VmProvider, deskfork: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[dict[str, Any], list[Path]]]:
    """Each agent's trial and its attempts' results, of one run of all of them, two at a time."""
    place = tmp_path_factory.mktemp("hostile")
    out, task = place / "runs", place / "tasks" / "write"
    task.mkdir(parents=True)
    (task / "task.yaml").write_text(TASK)
    (task / "gold.csv").write_text("a\n")
    named: list[str | Path] = []
    for act, (code, *_) in ACTS.items():
        agent, replay = place / f"{name_of(act)}.yaml", place / f"{name_of(act)}.jsonl"
        replay.write_text("".join(json.dumps({"code": cell}) + "\n" for cell in (code, AFTERWARDS)))
        agent.write_text(f"kind: replay\nname: {name_of(act)}\nfile: {replay.name}\ncell_timeout_s: 20\n")
        named += ["--agent", agent]
    begun_at = time.monotonic()
    done = deskfork(
        *("run", "start", "--source", task.parent, "--provider", "qemu", "--max-seconds", "180", "--parallel", "2"),
        *(*named, "--json", "--out", out),
        timeout_s=1500,
    )
    assert time.monotonic() - begun_at < 1200
    assert "Traceback" not in done.err
    assert not [record for record in live_records(cache_dir()) if str(out) in str(record)]
    trials = {trial["agent"]: trial for trial in done.json()["trials"]}
    assert trials.keys() == {name_of(act) for act in ACTS}
    (run_dir,) = out.iterdir()
    return {
        name: (trial, sorted((run_dir / trial["folder"]).parent.glob("attempt-*/result.json")))
        for name, trial in trials.items()
    }


@pytest.mark.parametrize("act", sorted(ACTS))
def test_a_trial_survives(ran: dict[str, tuple[dict[str, Any], list[Path]]], act: str) -> None:
    _, *endings = ACTS[act]
    trial, results = ran[name_of(act)]
    attempts = [json.loads(result.read_text()) for result in results]
    *lost, last = ((attempt["status"], attempt["score"], attempt["steps"]) for attempt in attempts)
    assert last in endings, attempts[-1]["error"]
    assert last[:2] == (trial["status"], trial["score"])
    # Once more after a first loss, which might be ours.
    assert lost == [("sandbox_lost", None, 1)] if last == LOST else lost in ([], [("sandbox_lost", None, 1)])
    for result, attempt in zip(results, attempts, strict=True):
        assert attempt["phases_s"]["agent"] < 180
        recorded = (result.parent / "trajectory.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(recorded) == attempt["steps"]
        assert all(len(line) < 2**20 for line in recorded)
        assert [json.loads(line)["step"] for line in recorded] == list(range(1, len(recorded) + 1))
