"""Compares agents pairwise, at the tasks that both have scores of."""

from collections.abc import Mapping, Sequence
from itertools import combinations

from deskfork.report.gather import TrialFacts, is_full
from deskfork.report.model import Comparison, Which
from deskfork.report.pairs import mean
from deskfork.report.statistics.paired import discordance, holm, mean_difference, signed_rank
from deskfork.report.summary import score_of

Scores = Mapping[tuple[str, int], float | None]
"""By task and repeat; None where the trial has no score."""


def compare(agents: Mapping[str, Sequence[TrialFacts]], clusters: Mapping[str, str]) -> tuple[Comparison, ...]:
    """Compare each agent with each that follows it, by both verdicts.

    Args:
        agents: Their trials, by their names.
        clusters: Of tasks that are one of a pair, the pair's name.
    """
    verdicts: tuple[Which, ...] = ("score", "strict")
    return tuple(found for which in verdicts for found in _corrected(_by_verdict(agents, clusters, which)))


def _by_verdict(
    agents: Mapping[str, Sequence[TrialFacts]], clusters: Mapping[str, str], which: Which
) -> list[Comparison]:
    scores = {
        name: {(trial.told.task, trial.told.repeat): score_of(trial, which) for trial in trials}
        for name, trials in agents.items()
    }
    return [
        _compare((one, scores[one]), (other, scores[other]), clusters, which) for one, other in combinations(scores, 2)
    ]


def _compare(
    first: tuple[str, Scores], second: tuple[str, Scores], clusters: Mapping[str, str], which: Which
) -> Comparison:
    ones, others = _means(first[1]), _means(second[1])
    tasks = [task for task in ones if task in others]
    differences = {task: ones[task] - others[task] for task in tasks}
    outcomes = [
        (bool(is_full(score)), bool(is_full(other)))
        for trial, score in first[1].items()
        if score is not None and (other := second[1].get(trial)) is not None
    ]
    all_tasks = {task for task, _ in (*first[1], *second[1])}
    tested = signed_rank(list(differences.values()))
    matched = discordance(outcomes)
    return Comparison(
        first=first[0],
        second=second[0],
        verdict=which,
        tasks=len(tasks),
        tasks_dropped=len(all_tasks) - len(tasks),
        trials_dropped=len({*first[1], *second[1]}) - len(outcomes),
        first_mean=mean([ones[task] for task in tasks]),
        second_mean=mean([others[task] for task in tasks]),
        mean=mean_difference(differences, clusters) if tasks else None,
        signed_rank=tested,
        signed_rank_p_holm=tested.p,
        mcnemar=matched,
        mcnemar_p_holm=matched.p,
    )


def _means(scores: Scores) -> dict[str, float]:
    by_task: dict[str, list[float]] = {}
    for (task, _), score in scores.items():
        if score is not None:
            by_task.setdefault(task, []).append(score)
    return {task: sum(found) / len(found) for task, found in by_task.items()}


def _corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    ranks = holm([each.signed_rank.p for each in comparisons])
    matches = holm([each.mcnemar.p for each in comparisons])
    return [
        each.model_copy(update={"signed_rank_p_holm": rank, "mcnemar_p_holm": match})
        for each, rank, match in zip(comparisons, ranks, matches, strict=True)
    ]
