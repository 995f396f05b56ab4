"""Sums up the trials of a run; a score that is absent is counted, and never taken for 0."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import Field

from deskfork.core.config import StrictModel
from deskfork.records.paths import RunPaths
from deskfork.records.reader import AttemptRecord, RunRecords
from deskfork.records.trial import TrialResult

UNFINISHED = "unfinished"
"""In the place of a status: the trial has no result, because its process was killed or its disk was full."""


class TrialReport(StrictModel):
    """One trial, by the attempt that counts."""

    task: str
    agent: str
    repeat: int
    attempts: int
    """How many there were."""
    status: str
    """A TrialStatus, or `unfinished`."""
    score: float | None
    steps: int | None
    duration_s: float | None
    reason: str
    """Why the score is absent, or 0 without judging; else what went wrong; else empty."""
    ending: str = ""
    cost_usd: float | None = None
    tokens: int = 0
    trace_id: str | None = None
    folder: str
    """The attempt's folder, relative to the run's."""


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
    statuses: dict[str, int]
    tokens: int
    cost_usd: float | None
    """None when one trial's is unknown."""
    duration_s: float


class RunReport(StrictModel):
    """What is printed, and given as JSON, of a run."""

    run_dir: Path
    trials: tuple[TrialReport, ...]
    agents: tuple[AgentReport, ...]
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
    return RunReport(run_dir=records.paths.root, trials=tuple(trials), agents=_agents(trials), skipped=skipped)


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
    return RunReport(
        run_dir=run_dir, trials=tuple(trials), agents=_agents(trials), planned=planned, skipped=dict(skipped)
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
        steps=result.steps,
        duration_s=round(result.duration_s, 3),
        reason=result.verdict.reason or result.error,
        ending=result.ending,
        cost_usd=result.cost_usd,
        tokens=result.tokens.total,
        trace_id=result.trace_id,
        folder=folder,
    )


def _agents(trials: list[TrialReport]) -> tuple[AgentReport, ...]:
    return tuple(
        _agent(name, [trial for trial in trials if trial.agent == name]) for name in sorted({t.agent for t in trials})
    )


def _agent(name: str, trials: list[TrialReport]) -> AgentReport:
    scores = [trial.score for trial in trials if trial.score is not None]
    costs = [trial.cost_usd for trial in trials]
    known = [cost for cost in costs if cost is not None]
    return AgentReport(
        agent=name,
        trials=len(trials),
        scored=len(scores),
        absent=len(trials) - len(scores),
        mean_score=sum(scores) / len(scores) if scores else None,
        statuses=dict(sorted(Counter(trial.status for trial in trials).items())),
        tokens=sum(trial.tokens for trial in trials),
        cost_usd=sum(known) if len(known) == len(costs) else None,
        duration_s=round(sum(trial.duration_s or 0.0 for trial in trials), 3),
    )
