"""Guards the worst end of a run, `kill -9`: what it had started goes by itself, or by `sandbox prune`."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deskfork.core.config import cache_dir
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.live import live_records
from deskfork.sandbox.provider import VmProvider
from left_behind import left_of

Spawn = Callable[..., subprocess.Popen[str]]
SOON_S = 60.0
TASK = """
instruction: Write out.csv.
evaluator:
  checks:
    - metric: compare_csv
      result: {type: guest_file, path: /home/user/Desktop/out.csv}
      expected: {type: host_file, path: gold.csv}
"""


@pytest.fixture
def slow_run(tmp_path: Path, provider: VmProvider) -> list[str]:
    """The command line of a run whose second step takes ten minutes."""
    folder = tmp_path / "tasks" / "slow"
    folder.mkdir(parents=True)
    (folder / "task.yaml").write_text(TASK)
    (folder / "gold.csv").write_text("a\n")
    replay = tmp_path / "slow.jsonl"
    replay.write_text("".join(json.dumps({"code": code}) + "\n" for code in ("1", "import time; time.sleep(600)")))
    options = ["--source", str(tmp_path / "tasks"), "--agent", f"replay:{replay}", "--provider", provider.name]
    return ["run", "start", *options, "--out", str(tmp_path / "runs")]


def sandbox_of(process: subprocess.Popen[str], out: Path) -> str:
    """Return the id of the sandbox of a run that has taken its first step."""

    def found() -> str | None:
        assert process.poll() is None, "the run has ended"
        has_begun = any(path.read_text() for path in out.glob("*/trials/*/*/*/*/trajectory.jsonl"))
        ids = [record.id for record in live_records(cache_dir()) if record.owner_pid == process.pid]
        return ids[0] if has_begun and ids else None

    sandbox_id = wait_until(found, Deadline.after(SOON_S), interval_s=0.1)
    assert sandbox_id is not None
    return sandbox_id


def reapers(owner_pid: int) -> list[int]:
    children = Path(f"/proc/{owner_pid}/task/{owner_pid}/children").read_text().split()
    return [int(pid) for pid in children if b"deskfork.sandbox.reaper" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_a_killed_run_leaves_nothing(spawn: Spawn, slow_run: list[str], tmp_path: Path) -> None:
    process = spawn(*slow_run)
    sandbox_id = sandbox_of(process, tmp_path / "runs")
    assert left_of(sandbox_id)
    process.send_signal(signal.SIGKILL)
    process.wait(20)
    assert wait_until(lambda: not left_of(sandbox_id), Deadline.after(SOON_S)), left_of(sandbox_id)


def test_what_a_run_left_that_was_killed_with_all_it_had_is_pruned(
    spawn: Spawn, slow_run: list[str], tmp_path: Path, deskfork: Callable[..., Any]
) -> None:
    process = spawn(*slow_run)
    sandbox_id = sandbox_of(process, tmp_path / "runs")
    (reaper,) = reapers(process.pid)
    for pid in (reaper, process.pid):
        subprocess.run(["kill", "-9", str(pid)], check=True, timeout=10)
    process.wait(20)
    assert left_of(sandbox_id), "there was nothing to prune"
    pruned = deskfork("sandbox", "prune", "--json")
    assert pruned.code == 0, pruned.err
    assert sandbox_id in pruned.json()
    assert left_of(sandbox_id) == []
