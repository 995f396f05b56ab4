"""Judging finished trials again, by what their evaluations read."""

from collections.abc import Callable
from pathlib import Path

import yaml

from deskfork.core.atomic import write_atomic
from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError, EvaluationError, InfraError, TaskError
from deskfork.evaluation.evidence import EvidenceIndex, read_evidence
from deskfork.evaluation.judge import judge
from deskfork.records.lock import RunLock
from deskfork.records.paths import AttemptPaths, RunPaths
from deskfork.records.reader import AttemptRecord, read_run
from deskfork.records.trial import TrialResult, Verdict
from deskfork.tasks.load import open_source
from deskfork.tasks.schema import Task
from deskfork.tasks.source import TaskSource
from deskfork.trial.lock import task_digest

Gather = Callable[[Task, AttemptPaths, EvidenceIndex], tuple[EvidenceIndex, Path]]
"""Reads an attempt's end state again: returns what it read, and where that is kept."""


class Regraded(StrictModel):
    """One attempt, judged again."""

    task: str
    agent: str
    repeat: int
    attempt: int
    before: Verdict
    after: Verdict | None
    """None when it could not be judged again."""
    reason: str = ""
    """Why it could not be."""
    is_task_changed: bool = False
    """Whether the task is not, byte for byte, what it was when the run was made."""

    @property
    def has_changed(self) -> bool:
        """Whether a score is another one now."""
        if self.after is None:
            return False
        return (self.before.score, self.before.strict_score) != (self.after.score, self.after.strict_score)


def regrade_run(run_dir: Path, *, gather: Gather | None = None, is_applied: bool = False) -> list[Regraded]:
    """Judge every attempt of a run again that its evaluation got to.

    Args:
        run_dir: A run's directory.
        gather: Reads a kept end state again; None takes what the evaluation kept.
        is_applied: Write results with the new verdicts; the earlier ones stay beside them.

    Raises:
        ConfigError: `run_dir` is no run directory, or its tasks are not where they were.
        InfraError: A result could not be written.
    """
    records = read_run(run_dir)
    source = open_source(_source(records.paths))
    tasks: dict[str, Task | str] = {}
    regraded = []
    for attempt in records.attempts:
        if attempt.result is None or not attempt.result.verdict.metrics:
            # It never got to its evaluation, or the agent destroyed the machine: nothing was read.
            continue
        if attempt.task not in tasks:
            tasks[attempt.task] = _load(source, attempt.task)
        entry = _regrade(attempt, attempt.result, tasks[attempt.task], records.lock, gather)
        if is_applied and entry.after is not None and entry.has_changed:
            _replace(attempt.paths, attempt.result, entry.after)
        regraded.append(entry)
    return regraded


def _regrade(
    attempt: AttemptRecord, result: TrialResult, task: Task | str, lock: RunLock | None, gather: Gather | None
) -> Regraded:
    after, reason = None, task if isinstance(task, str) else ""
    if isinstance(task, Task):
        try:
            index, directory = read_evidence(attempt.paths.guest), attempt.paths.guest
            if gather is not None:
                index, directory = gather(task, attempt.paths, index)
            after = judge(task, index, directory)
            if after.score is None and result.verdict.score is not None:
                # The state was judged once, so it is the evidence or the gold that is damaged now.
                reason, after = after.reason, None
        except (EvaluationError, InfraError, ConfigError) as error:
            reason = str(error)
    return Regraded(
        task=attempt.task,
        agent=attempt.agent,
        repeat=attempt.repeat,
        attempt=attempt.attempt,
        before=result.verdict,
        after=after,
        reason=reason,
        is_task_changed=isinstance(task, Task) and lock is not None and lock.tasks.get(task.id) != task_digest(task),
    )


def _source(paths: RunPaths) -> Path | None:
    # Only the source, so that a run of an earlier version can be regraded as well.
    try:
        named = yaml.safe_load(paths.config.read_text(encoding="utf-8"))["source"]
        return Path(named) if named is not None else None
    except (OSError, ValueError, TypeError, LookupError, yaml.YAMLError) as error:
        raise ConfigError(f"{paths.config} cannot be read: {error}; a run is regraded by the tasks it names") from error


def _load(source: TaskSource, task: str) -> Task | str:
    try:
        return source.load(task)
    except TaskError as error:
        return str(error)


def _replace(paths: AttemptPaths, result: TrialResult, verdict: Verdict) -> None:
    changed = result.model_copy(
        update={"verdict": verdict, "score": verdict.score, "strict_score": verdict.strict_score}
    )
    try:
        earlier = sum(1 for _ in paths.root.glob("result-before-*.json"))
        write_atomic(paths.root / f"result-before-{earlier + 1}.json", result.model_dump_json(indent=2) + "\n")
        write_atomic(paths.result, changed.model_dump_json(indent=2) + "\n")
    except OSError as error:
        raise InfraError(f"{paths.result}: could not be written: {error.strerror or error}") from error
