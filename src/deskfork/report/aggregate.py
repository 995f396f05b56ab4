"""Sums up the trials of a run; a score that is absent is counted, and never taken for 0."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import Field

from deskfork.core.config import StrictModel
from deskfork.records.lock import RunLock, TaskWording
from deskfork.records.paths import RunPaths
from deskfork.records.reader import AttemptRecord, RunRecords, read_lock
from deskfork.records.trial import TrialResult
from deskfork.report.pairs import PairReport, in_pairs, mean, report_pairs
from deskfork.report.trial import TrialReport

UNFINISHED = "unfinished"
"""In the place of a status: the trial has no result, because its process was killed or its disk was full."""


class AgentReport(StrictModel):
    """All trials of one agent."""

    agent: str
    trials: int
    scored: int
    """Trials that the mean is taken over."""
    absent: int
    """Trials without a score."""
    mean_score: float | None
    """None when no trial has a score."""
    mean_strict_score: float | None
    """Over the same trials."""
    differing: int
    """Trials whose two scores differ."""
    statuses: dict[str, int]
    tokens: int | None
    """None when one trial's are unknown."""
    cost_usd: float | None
    """None when one trial's is unknown."""
    duration_s: float


class RunReport(StrictModel):
    """What is printed, and given as JSON, of a run."""

    run_dir: Path
    trials: tuple[TrialReport, ...]
    agents: tuple[AgentReport, ...]
    pairs: tuple[PairReport, ...] = ()
    """For each agent the pairs of which it was given both wordings."""
    planned: int | None = None
    """How many trials the run was to have, where that is known."""
    skipped: dict[str, str] = Field(default_factory=dict)
    """Why a task was left out, by its id."""


def report_run(records: RunRecords) -> RunReport:
    """Sum up a run as it lies on disk."""
    counts = Counter((a.task, a.agent, a.repeat) for a in records.attempts)
    trials = [
        _trial(last, counts[last.task, last.agent, last.repeat], str(last.paths.root.relative_to(records.paths.root)))
        for last in records.trials()
    ]
    skipped = records.lock.skipped if records.lock else {}
    return _report(records.paths.root, trials, records.lock, skipped, planned=None)


def report_results(
    run_dir: Path, results: Iterable[TrialResult], *, planned: int, skipped: Mapping[str, str]
) -> RunReport:
    """Sum up a run that has just ended, also the trials whose records could not be written.

    Args:
        run_dir: The run's directory.
        results: The attempt that counts of each trial.
        planned: How many trials there were to be.
        skipped: Why a task was left out, by its id.
    """
    trials = [_result(result, result.attempt + 1, _folder(run_dir, result)) for result in results]
    return _report(run_dir, trials, read_lock(RunPaths(run_dir).lock), skipped, planned=planned)


def _report(
    run_dir: Path, trials: list[TrialReport], lock: RunLock | None, skipped: Mapping[str, str], *, planned: int | None
) -> RunReport:
    wordings: Mapping[str, TaskWording] = lock.wordings if lock else {}
    trials = in_pairs(trials, wordings)
    return RunReport(
        run_dir=run_dir,
        trials=tuple(trials),
        agents=_agents(trials),
        pairs=report_pairs(trials, wordings),
        planned=planned,
        skipped=dict(skipped),
    )


def _folder(run_dir: Path, result: TrialResult) -> str:
    place = RunPaths(run_dir).attempt(result.task, result.agent, result.repeat, result.attempt)
    return str(place.root.relative_to(run_dir))


def _trial(last: AttemptRecord, attempts: int, folder: str) -> TrialReport:
    if last.result is not None:
        return _result(last.result, attempts, folder)
    return TrialReport(
        task=last.task,
        agent=last.agent,
        repeat=last.repeat,
        attempts=attempts,
        status=UNFINISHED,
        score=None,
        strict_score=None,
        steps=None,
        duration_s=None,
        reason="it left no result.json: its process was killed, or its disk was full",
        folder=folder,
    )


def _result(result: TrialResult, attempts: int, folder: str) -> TrialReport:
    return TrialReport(
        task=result.task,
        agent=result.agent,
        repeat=result.repeat,
        attempts=attempts,
        status=result.status.value,
        score=result.score,
        strict_score=result.strict_score,
        difference=result.verdict.difference,
        steps=result.steps,
        duration_s=round(result.duration_s, 3),
        reason=result.verdict.reason or result.error,
        ending=result.ending,
        cost_usd=result.cost_usd,
        tokens=result.tokens.total if result.tokens else None,
        trace_id=result.trace_id,
        folder=folder,
    )


def _agents(trials: list[TrialReport]) -> tuple[AgentReport, ...]:
    return tuple(
        _agent(name, [trial for trial in trials if trial.agent == name]) for name in sorted({t.agent for t in trials})
    )


def _agent(name: str, trials: list[TrialReport]) -> AgentReport:
    scores = [trial.score for trial in trials if trial.score is not None]
    strict = [trial.strict_score for trial in trials if trial.strict_score is not None]
    costs = [trial.cost_usd for trial in trials]
    counts = [trial.tokens for trial in trials if trial.tokens is not None]
    known = [cost for cost in costs if cost is not None]
    return AgentReport(
        agent=name,
        trials=len(trials),
        scored=len(scores),
        absent=len(trials) - len(scores),
        mean_score=mean(scores),
        mean_strict_score=mean(strict),
        differing=sum(trial.has_difference for trial in trials),
        statuses=dict(sorted(Counter(trial.status for trial in trials).items())),
        tokens=sum(counts) if len(counts) == len(trials) else None,
        cost_usd=sum(known) if len(known) == len(costs) else None,
        duration_s=round(sum(trial.duration_s or 0.0 for trial in trials), 3),
    )
