"""Reads runs for a report: each file once, and of each trajectory only what is found in it is kept."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deskfork.records.lock import RunLock
from deskfork.records.reader import AttemptRecord, RunRecords, read_trajectory
from deskfork.records.trajectory import StepRecord
from deskfork.records.trial import TrialResult
from deskfork.report.aggregate import report_run
from deskfork.report.failures.played import Evidence, Played, turns_of
from deskfork.report.failures.rules import failures_of
from deskfork.report.model import AgentKind, ReportedTrial
from deskfork.report.trial import TrialReport
from deskfork.tasks.pairs import pair_name

_SEES_NOTHING = frozenset({"terminal", "text_only"})
"""Observations that do not show the screen."""
_KINDS: tuple[AgentKind, ...] = ("model", "oracle", "null", "replay")
SPLIT = ("model", "guest", "observe", "framework")


@dataclass(frozen=True)
class TrialFacts:
    """What a report needs to know of one trial."""

    told: ReportedTrial
    result: TrialResult | None
    """None when it never ended."""
    kind: AgentKind
    pair: str | None
    """Name of the pair its task is one of."""
    tags: tuple[str, ...]
    split_s: Mapping[str, float] | None
    """Seconds of its steps by what they were spent on; None when it has no steps."""
    findings: Mapping[str, Sequence[Evidence]]

    @property
    def is_success(self) -> bool | None:
        """Whether the benchmark's own evaluator gives it the full score; None without a score."""
        return is_full(self.told.score)


def is_full(score: float | None) -> bool | None:
    """Return whether a score is a success: nothing less than 1 is. None without a score."""
    return None if score is None else score >= 1.0


def gather(records: RunRecords, run: str, names: Mapping[str, str]) -> list[TrialFacts]:
    """Read a run's trials, the two of a pair side by side.

    Args:
        records: The run.
        run: Its label.
        names: What the report calls its agents, by their names.

    Raises:
        ConfigError: A trajectory is corrupt.
    """
    attempts = {(last.task, last.agent, last.repeat): last for last in records.trials()}
    agents = _configurations(records.lock)
    pairs = pair_names(records.lock)
    tags = records.lock.tags if records.lock else {}
    facts = []
    for trial in report_run(records).trials:
        attempt = attempts[trial.task, trial.agent, trial.repeat]
        config = agents.get(trial.agent, {})
        played = _play(attempt, trial, _sees_each_screen(config))
        findings = failures_of(played)
        facts.append(
            TrialFacts(
                told=_told(trial, attempt.result, run, names, findings),
                result=attempt.result,
                kind=agent_kind(config),
                pair=pairs.get(trial.task),
                tags=tags.get(trial.task, ()),
                split_s=_split([turn.record for turn in played.turns]),
                findings=findings,
            )
        )
    return facts


def pair_names(lock: RunLock | None) -> dict[str, str]:
    """Return the name of the pair of each task of a run that is one of two wordings."""
    if lock is None:
        return {}
    counterparts: dict[str, str | None] = {task: known.counterpart for task, known in lock.wordings.items()}
    # The other wording need not be in the run: of two runs one may have each.
    counterparts |= {other: task for task, other in counterparts.items() if other and other not in counterparts}
    return {task: pair_name(task, counterparts[task], counterparts) for task in lock.wordings}


def _configurations(lock: RunLock | None) -> dict[str, Mapping[str, object]]:
    return {str(config.get("name")): config for config in lock.agents} if lock else {}


def agent_kind(config: Mapping[str, object]) -> AgentKind:
    """Return what an agent of this configuration is."""
    return next((kind for kind in _KINDS if config.get("kind") == kind), "unknown")


def _sees_each_screen(config: Mapping[str, object]) -> bool | None:
    observe = config.get("observe")
    if config.get("kind") != "model" or not isinstance(observe, list):
        return None
    return any(isinstance(each, dict) and each.get("name") not in _SEES_NOTHING for each in observe)


def _play(attempt: AttemptRecord, trial: TrialReport, sees_each_screen: bool | None) -> Played:
    steps = read_trajectory(attempt.paths) if attempt.paths.trajectory.is_file() else ()
    return Played(
        turns=turns_of(steps),
        status=trial.status,
        ending=trial.ending,
        self_report=attempt.result.self_report if attempt.result else None,
        is_success=is_full(trial.score),
        sees_each_screen=sees_each_screen,
    )


def _told(
    trial: TrialReport,
    result: TrialResult | None,
    run: str,
    names: Mapping[str, str],
    findings: Mapping[str, Sequence[Evidence]],
) -> ReportedTrial:
    lines = Counter(result.line_mix) if result else Counter[str]()
    return ReportedTrial(
        **{**dict(trial), "agent": names[trial.agent]},
        run=run,
        self_report=result.self_report if result else None,
        gui_ratio=lines["gui"] / lines.total() if lines.total() else None,
        failure_modes={rule: found[0].step for rule, found in findings.items()},
        failure_details={rule: found[0].detail for rule, found in findings.items() if found[0].detail},
    )


def _split(steps: Sequence[StepRecord]) -> dict[str, float] | None:
    if not steps:
        return None
    return {part: sum(getattr(step, f"{part}_s") for step in steps) for part in SPLIT}
