"""Measuring what runs cost beside what happens in their sandboxes: scheduling, records, and going on after a kill."""

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import yaml

from deskfork.bench.figures import Figure
from deskfork.core.config import StrictModel
from deskfork.core.errors import InfraError
from deskfork.records.paths import RunPaths
from deskfork.records.reader import read_run
from deskfork.records.trial import TrialResult

_TASKS = 10
_TASK = """
instruction: Write out.csv.
evaluator:
  checks:
    - metric: compare_csv
      result: {type: guest_file, path: /home/user/Desktop/out.csv}
      expected: {type: host_file, path: gold.csv}
"""
_WARM_UP = 100
"""Trials after which memory is taken to be what it stays at."""


class Runs(Protocol):
    """How runs are started, resumed and reported: what is measured."""

    def start(self, source: Path, out: Path, repeats: int, on_trial: Callable[[], None]) -> Path:
        """Run the null agent so often on each task, one at a time on the fake provider; return the run's directory.

        Args:
            source: The tasks' folder.
            out: Parent of the run's directory.
            repeats: Trials of each task.
            on_trial: Called after each trial.
        """
        ...

    def resume(self, run_dir: Path) -> int:
        """Resume a run; return of how many trials it has a result then."""
        ...

    def report(self, run_dir: Path) -> object:
        """Sum up a run."""
        ...


class RunFigures(StrictModel):
    """What `deskfork bench run` measures."""

    trials: int
    own_ms_per_trial: float
    """From one trial's end to the next one's, less the trial's phases (fork to close): scheduling and records."""
    whole_ms_per_trial: float
    """With the phases, which are the fake provider's processes and the evaluation."""
    memory_mib: float
    """Resident memory of the process at its highest, the agents' libraries included."""
    memory_growth_mib: float
    """From the 100th trial to the last."""
    finished_trials: int
    resume_s: Figure
    """Of a run in which nothing is left to do: reading, comparing with the lock, summing up."""
    report_s: Figure
    """Of that run: reading and summing up."""


def bench_runs(
    runs: Runs, on_progress: Callable[[str], None], *, trials: int = 1000, finished: int = 10_000, rounds: int = 3
) -> RunFigures:
    """Measure scheduling and resuming.

    Args:
        runs: What to measure.
        on_progress: Told what is being measured.
        trials: How many to schedule, a multiple of 10.
        finished: How many trials the run has that is resumed, a multiple of 10.
        rounds: How often to resume and report.

    Raises:
        InfraError: A run did not have the trials that it was to have.
    """
    with TemporaryDirectory(prefix="deskfork-bench-") as folder:
        source, out = Path(folder) / "tasks", Path(folder) / "runs"
        _write_tasks(source)
        on_progress(f"scheduling {trials} trials")
        resident: list[float] = []
        begun_s = time.monotonic()
        run_dir = runs.start(source, out, trials // _TASKS, lambda: resident.append(_resident_mib()))
        passed_s = time.monotonic() - begun_s
        inside_s = _seconds_in_phases(run_dir, trials)
        on_progress(f"making a run of {finished} finished trials")
        _multiply(run_dir, trials // _TASKS, finished // _TASKS)
        resume_s = [_timed(lambda: _require(runs.resume(run_dir), finished)) for _ in range(rounds)]
        on_progress("summing it up")
        report_s = [_timed(lambda: runs.report(run_dir)) for _ in range(rounds)]
    return RunFigures(
        trials=trials,
        own_ms_per_trial=round(1000 * (passed_s - inside_s) / trials, 2),
        whole_ms_per_trial=round(1000 * passed_s / trials, 2),
        memory_mib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        memory_growth_mib=round(resident[-1] - resident[min(_WARM_UP, len(resident)) - 1], 1),
        finished_trials=finished,
        resume_s=Figure.of(resume_s),
        report_s=Figure.of(report_s),
    )


def _write_tasks(source: Path) -> None:
    for number in range(_TASKS):
        folder = source / f"task-{number}"
        folder.mkdir(parents=True)
        (folder / "task.yaml").write_text(_TASK, encoding="utf-8")
        (folder / "gold.csv").write_text("a,b\n", encoding="utf-8")


def _seconds_in_phases(run_dir: Path, trials: int) -> float:
    results = [attempt.result for attempt in read_run(run_dir).attempts if attempt.result is not None]
    _require(len(results), trials)
    return sum(sum(result.phases_s.values()) for result in results)


def _multiply(run_dir: Path, repeats: int, wanted: int) -> None:
    """Add finished trials to a run, and have its run.yaml ask for that many."""
    paths = RunPaths(run_dir)
    config = yaml.safe_load(paths.config.read_text(encoding="utf-8"))
    paths.config.write_text(yaml.safe_dump({**config, "repeats": wanted}), encoding="utf-8")
    first = [attempt for attempt in read_run(run_dir).trials() if attempt.repeat == 0 and attempt.result]
    for result in (attempt.result for attempt in first):
        assert result is not None
        for repeat in range(repeats, wanted):
            _write_finished(paths, result.model_copy(update={"repeat": repeat}))


def _write_finished(paths: RunPaths, result: TrialResult) -> None:
    place = paths.attempt(result.task, result.agent, result.repeat, result.attempt)
    place.root.mkdir(parents=True)
    place.result.write_text(result.model_dump_json(indent=2), encoding="utf-8")
    place.trajectory.touch()


def _require(found: int, wanted: int) -> None:
    if found != wanted:
        raise InfraError(f"the run that was measured has {found} trials with a result, not {wanted}")


def _timed(action: Callable[[], object]) -> float:
    begun_s = time.monotonic()
    action()
    return time.monotonic() - begun_s


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
