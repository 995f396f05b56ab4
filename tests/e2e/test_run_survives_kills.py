"""Guards the promise of `run resume`: whenever a run is killed, nothing that ended is lost, repeated or half there.

On the fake provider, so that a machine without QEMU shows it too. Each run is a forked process that is killed with
SIGKILL at a random instant, again and again, until one of them gets to the end.
"""

import json
import multiprocessing
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from deskfork.core.errors import ConfigError
from deskfork.records.reader import read_run, read_trajectory
from deskfork.records.trial import TrialResult, TrialStatus
from deskfork.trial.config import resolve_config
from deskfork.trial.resume import resume_run
from deskfork.trial.run import start_run

TASK = """
instruction: Write out.csv.
evaluator:
  checks:
    - metric: compare_csv
      result: {type: guest_file, path: /home/user/Desktop/out.csv}
      expected: {type: host_file, path: gold.csv}
solution: solution.py
"""
SOLUTION = '# %%\nfrom pathlib import Path\n# %%\n(Path.home() / "Desktop/out.csv").write_text("a,b\\n")\n'
TRIALS = 40
KILLS = 12
WAIT_S = 300


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name in ("first", "second"):
        folder = tmp_path / "tasks" / name
        folder.mkdir(parents=True)
        for file, content in {"task.yaml": TASK, "gold.csv": "a,b\n", "solution.py": SOLUTION}.items():
            (folder / file).write_text(content)
    return tmp_path / "tasks"


def killed_after(seconds: float | None, work: Callable[[], object]) -> int | None:
    """Run `work` in a process of its own, kill that after a while, and return its exit code."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join(WAIT_S if seconds is None else seconds)
    if process.is_alive():
        assert seconds is not None, "the run did not end"
        process.kill()
        process.join(30)
    return process.exitcode


def counted(run_dir: Path) -> dict[Path, bytes]:
    """Return the results that must never change again, by their paths."""
    ended = (attempt for attempt in read_run(run_dir).attempts if attempt.result is not None)
    return {attempt.paths.result: attempt.paths.result.read_bytes() for attempt in ended}


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_run_that_is_killed_again_and_again_has_each_trial_once(source: Path, tmp_path: Path, parallel: int) -> None:
    chance = random.Random(parallel)
    given = {"source": source, "out": tmp_path / "runs", "provider": "fake", "parallel": parallel}
    config = resolve_config(None, {**given, "agents": ["oracle", "null"], "repeats": TRIALS // 4})
    ignore = {"notify": lambda event: None, "on_begin": lambda begun: None}
    code = killed_after(chance.uniform(0.3, 0.8), lambda: start_run(config, **ignore))
    run_dirs = list((tmp_path / "runs").iterdir()) if (tmp_path / "runs").exists() else []
    if not run_dirs or not (run_dirs[0] / "run.yaml").exists():
        pytest.skip("this machine was too slow to begin a run before it was killed")
    (run_dir,) = run_dirs
    kills = int(code == -signal.SIGKILL)
    while code != 0:
        before = counted(run_dir)
        wait_s = chance.uniform(0.02, 0.6) if kills < KILLS else None
        code = killed_after(wait_s, lambda: resume_run(run_dir, **ignore))
        assert code in (0, -signal.SIGKILL)
        kills += code == -signal.SIGKILL
        after = counted(run_dir)
        assert {path: after[path] for path in before} == before, "a result that was there has changed"
    assert kills >= 4, "the run was hardly killed at all"
    records = read_run(run_dir)
    attempts = [attempt.result for attempt in records.attempts]
    assert all(result is not None for result in attempts), "an attempt has no result"
    counting = [result for result in attempts if result and result.status is not TrialStatus.CANCELLED]
    assert len({(r.task, r.agent, r.repeat) for r in counting}) == len(counting) == TRIALS
    assert all(result.score == (1.0 if result.agent == "oracle" else 0.0) for result in counting)
    assert [trial.result for trial in records.trials()] == [r for r in attempts if r in counting]
    for attempt in records.attempts:
        if attempt.result is not None and attempt.result.status is not TrialStatus.CANCELLED:
            assert len(read_trajectory(attempt.paths)) == attempt.result.steps
            assert json.loads(attempt.paths.messages.read_text()) is not None


def test_what_a_power_cut_leaves_torn_is_no_result(source: Path, tmp_path: Path) -> None:
    given = {"source": source, "out": tmp_path / "runs", "provider": "fake", "agents": ["oracle"]}
    summary = start_run(resolve_config(None, given), notify=lambda event: None, on_begin=lambda begun: None)
    first, second = (attempt.paths for attempt in read_run(summary.run_dir).attempts)
    whole = first.result.read_text()
    first.result.unlink()
    first.result.with_name(".result.json.1234abcd.partial").write_text(whole[:100])
    first.trajectory.write_text(first.trajectory.read_text()[:-30])
    second.result.unlink()
    for path in (second.screens, second.guest, second.logs):
        for entry in path.iterdir():
            entry.unlink()
        path.rmdir()
    for entry in second.root.iterdir():
        entry.unlink()
    resumed = resume_run(summary.run_dir, notify=lambda event: None, on_begin=lambda begun: None)
    assert [(result.attempt, result.score) for result in resumed.results] == [(1, 1.0), (1, 1.0)]
    cut = [TrialResult.model_validate_json(paths.result.read_text()) for paths in (first, second)]
    assert [(result.status, result.steps) for result in cut] == [(TrialStatus.CANCELLED, 1), (TrialStatus.CANCELLED, 0)]
    assert first.result.with_name(".result.json.1234abcd.partial").exists()


def test_a_run_that_another_process_works_on_is_refused(source: Path, tmp_path: Path) -> None:
    given = {"source": source, "out": tmp_path / "runs", "provider": "fake", "agents": ["null"]}
    refused = []

    def try_to_resume(event: object) -> None:
        (run_dir,) = (tmp_path / "runs").iterdir()
        with pytest.raises(ConfigError, match="works on this run") as raised:
            resume_run(run_dir, notify=lambda event: None, on_begin=lambda begun: None)
        refused.append(str(raised.value))

    start_run(resolve_config(None, given), notify=lambda event: None, on_begin=try_to_resume)
    assert len(refused) == 1
