"""Runs as pandas tables, for notebooks."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from deskfork.records.reader import AttemptRecord, read_run, read_trajectory
from deskfork.report.build import build_report
from deskfork.report.gather import SPLIT, pair_names
from deskfork.report.model import Report


@dataclass(frozen=True)
class LoadedRuns:
    """Runs, ready to be looked at."""

    report: Report
    """As `deskfork report show` tells it."""
    trials: pd.DataFrame
    """A row for each trial, in the report's order. Columns: the fields of ReportedTrial; `success` and
    `strict_success`, missing without a score; `pair`, the goal's name where it is worded twice, else the task;
    `phase_NAME_s`; and `lines_CLASS`, counts."""
    steps: pd.DataFrame
    """A row for each step of those trials: `run`, `task`, `agent`, `repeat`, `step`, `action`, `failed`, `refused`,
    `timed_out`, `tokens`, seconds as `model_s`, `guest_s`, `observe_s` and `framework_s`, and `lines_CLASS`."""


def load_runs(*run_dirs: Path | str) -> LoadedRuns:
    """Read runs, also such as were cut off.

    Args:
        run_dirs: Directories that `deskfork run start` made, at least one.

    Raises:
        ConfigError: One is no run directory, or a file in it is corrupt; the message names the file.
    """
    runs = [read_run(Path(run_dir)) for run_dir in run_dirs]
    report = build_report(runs)
    attempts = {attempt.paths.root: attempt for records in runs for attempt in records.attempts}
    folders = {run.label: run.folder for run in report.runs}
    pairs = {task: pair for records in runs for task, pair in pair_names(records.lock).items()}
    trials, steps = [], []
    for trial in report.trials:
        attempt = attempts[folders[trial.run] / trial.folder]
        success = {"success": _success(trial.score), "strict_success": _success(trial.strict_score)}
        trials.append({**trial.model_dump(), **success, "pair": pairs.get(trial.task, trial.task), **_of(attempt)})
        whose = {"run": trial.run, "task": trial.task, "agent": trial.agent, "repeat": trial.repeat}
        steps += [{**whose, **step} for step in _steps(attempt)]
    types = {"success": "boolean", "strict_success": "boolean"} if trials else {}
    return LoadedRuns(report, pd.DataFrame(trials).astype(types), pd.DataFrame(steps))


def _success(score: float | None) -> bool | None:
    return None if score is None else score >= 1.0


def _of(attempt: AttemptRecord) -> dict[str, float]:
    if attempt.result is None:
        return {}
    phases = {f"phase_{name}_s": seconds for name, seconds in attempt.result.phases_s.items()}
    return phases | {f"lines_{kind}": count for kind, count in attempt.result.line_mix.items()}


def _steps(attempt: AttemptRecord) -> list[dict[str, object]]:
    if not attempt.paths.trajectory.is_file():
        return []
    return [
        {
            "step": step.step,
            "action": step.action,
            "failed": bool(step.error or step.refused or step.timed_out),
            "refused": bool(step.refused),
            "timed_out": step.timed_out,
            "tokens": step.tokens.total if step.tokens else None,
            **{f"{part}_s": getattr(step, f"{part}_s") for part in SPLIT},
            **{f"lines_{kind}": count for kind, count in step.lines.items()},
        }
        for step in read_trajectory(attempt.paths)
    ]
