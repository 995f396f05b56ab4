"""Sums up one agent's trials."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from deskfork.report.failures.rules import RULES
from deskfork.report.gather import SPLIT, TrialFacts, is_full
from deskfork.report.model import (
    Absence,
    ActionMix,
    AgentSummary,
    Confusion,
    FailureMode,
    GroupRate,
    Spread,
    Which,
)
from deskfork.report.pairs import mean
from deskfork.report.statistics.logistic import fit_logistic
from deskfork.report.statistics.rates import Rate, rate_of
from deskfork.report.statistics.repeats import PassAt, passes

_REASON_CHARS = 160


def summarise(trials: Sequence[TrialFacts]) -> AgentSummary:
    """Sum up one agent's trials in one run, at least one."""
    first = trials[0]
    scores, strict = _scores(trials, "score"), _scores(trials, "strict")
    told = [trial.told for trial in trials]
    return AgentSummary(
        agent=first.told.agent,
        kind=first.kind,
        run=first.told.run,
        model=next((trial.result.model for trial in trials if trial.result and trial.result.model), None),
        trials=len(trials),
        tasks=len({trial.task for trial in told}),
        scored=len(scores),
        absent=_absences(trials),
        statuses=dict(sorted(Counter(trial.status for trial in told).items())),
        success=_rate(scores),
        strict_success=_rate(strict),
        mean_score=mean(scores),
        mean_strict_score=mean(strict),
        passes=_passes(trials, "score"),
        strict_passes=_passes(trials, "strict"),
        steps=spread(trial.steps for trial in told),
        tokens=spread(trial.tokens for trial in told),
        cost_usd=spread(trial.cost_usd for trial in told),
        duration_s=spread(trial.duration_s for trial in told),
        phases_s=_phases(trials),
        agent_phase_s={part: spread(trial.split_s[part] for trial in trials if trial.split_s) for part in SPLIT},
        self_report=_confusion(trials),
        actions=_actions(trials),
        failure_modes=_failure_modes(trials),
        by_tag=_groups(trials, lambda trial: trial.tags),
        by_evaluator=_groups(trials, _metrics),
        by_pair=_groups(trials, lambda trial: (trial.pair,) if trial.pair else ()),
        by_wording=_groups(trials, lambda trial: (trial.told.wording,) if trial.told.wording else ()),
    )


def score_of(trial: TrialFacts, which: Which) -> float | None:
    """Return one of a trial's two scores."""
    return trial.told.score if which == "score" else trial.told.strict_score


def spread(values: Iterable[float | None]) -> Spread:
    """Return how values are spread; None is one that is not known."""
    given = list(values)
    known = [float(value) for value in given if value is not None]
    quartiles = np.percentile(known, [25, 50, 75]).tolist() if known else [None, None, None]
    return Spread(
        known=len(known),
        unknown=len(given) - len(known),
        median=quartiles[1],
        low_quartile=quartiles[0],
        high_quartile=quartiles[2],
        total=sum(known) if len(known) == len(given) else None,
    )


def _scores(trials: Iterable[TrialFacts], which: Which) -> list[float]:
    return [score for trial in trials if (score := score_of(trial, which)) is not None]


def _rate(scores: Sequence[float]) -> Rate:
    return rate_of(sum(bool(is_full(score)) for score in scores), len(scores))


def _absences(trials: Sequence[TrialFacts]) -> tuple[Absence, ...]:
    counts = Counter(
        (trial.told.status, trial.told.reason[:_REASON_CHARS]) for trial in trials if trial.told.score is None
    )
    return tuple(Absence(status=status, reason=reason, trials=n) for (status, reason), n in counts.most_common())


def _passes(trials: Sequence[TrialFacts], which: Which) -> tuple[PassAt, ...]:
    by_task: dict[str, list[float]] = {}
    for trial in trials:
        by_task.setdefault(trial.told.task, []).extend(_scores([trial], which))
    return passes([(len(scores), _rate(scores).successes) for scores in by_task.values()])


def _phases(trials: Sequence[TrialFacts]) -> dict[str, Spread]:
    reached = [trial.result.phases_s for trial in trials if trial.result]
    names = dict.fromkeys(name for phases in reached for name in phases)
    return {name: spread(phases[name] for phases in reached if name in phases) for name in names}


def _confusion(trials: Sequence[TrialFacts]) -> Confusion:
    counts = Counter((trial.told.self_report, trial.is_success) for trial in trials)
    return Confusion(
        done_success=counts["done", True],
        done_failure=counts["done", False],
        failed_success=counts["failed", True],
        failed_failure=counts["failed", False],
        silent_success=counts[None, True],
        silent_failure=counts[None, False],
        absent=sum(count for (_, is_success), count in counts.items() if is_success is None),
    )


def _actions(trials: Sequence[TrialFacts]) -> ActionMix:
    ended = [(trial.result, trial.is_success, trial.told.gui_ratio) for trial in trials if trial.result]
    ratios = [(ratio, is_good) for _, is_good, ratio in ended if ratio is not None and is_good is not None]
    return ActionMix(
        steps_success=_sum(result.action_mix for result, is_good, _ in ended if is_good is True),
        steps_failure=_sum(result.action_mix for result, is_good, _ in ended if is_good is False),
        lines_success=_sum(result.line_mix for result, is_good, _ in ended if is_good is True),
        lines_failure=_sum(result.line_mix for result, is_good, _ in ended if is_good is False),
        gui_ratio_success=spread(ratio for ratio, is_good in ratios if is_good).median,
        gui_ratio_failure=spread(ratio for ratio, is_good in ratios if not is_good).median,
        fit=fit_logistic([ratio for ratio, _ in ratios], [is_good for _, is_good in ratios]),
    )


def _sum(mixes: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for mix in mixes:
        total.update(mix)
    return dict(sorted(total.items()))


def _failure_modes(trials: Sequence[TrialFacts]) -> tuple[FailureMode, ...]:
    found = []
    for rule in RULES:
        held = [trial for trial in trials if rule.name in trial.findings]
        counts = Counter(trial.is_success for trial in held)
        mode = FailureMode(
            rule=rule.name,
            successes=counts[True],
            failures=counts[False],
            absent=counts[None],
            occurrences=sum(len(trial.findings[rule.name]) for trial in held),
        )
        found += [mode] if held else []
    return tuple(found)


def _metrics(trial: TrialFacts) -> tuple[str, ...]:
    return tuple(dict.fromkeys(outcome.metric for outcome in trial.result.verdict.metrics)) if trial.result else ()


def _groups(trials: Sequence[TrialFacts], of: Callable[[TrialFacts], Iterable[str]]) -> tuple[GroupRate, ...]:
    groups: dict[str, list[TrialFacts]] = {}
    for trial in trials:
        for name in of(trial):
            groups.setdefault(name, []).append(trial)
    return tuple(
        GroupRate(
            name=name,
            trials=len(members),
            success=_rate(_scores(members, "score")),
            strict_success=_rate(_scores(members, "strict")),
            mean_score=mean(_scores(members, "score")),
        )
        for name, members in sorted(groups.items())
    )
