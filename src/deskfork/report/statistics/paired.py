"""Two agents at the same tasks: is one better, and by how much."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_effectsize

from deskfork.core.config import StrictModel
from deskfork.report.statistics.rates import CONFIDENCE

RESAMPLES = 9_999
_SEED = 20_251_101
"""Fixed, so that a report of the same records says the same."""


class SignedRank(StrictModel):
    """Wilcoxon's signed-rank test over tasks, two-sided."""

    tasks: int
    nonzero: int
    """Tasks at which the agents differ; the others say nothing here and are dropped, as Wilcoxon did."""
    statistic: float | None
    """The smaller of both rank sums; None when no task differs."""
    p: float | None
    rank_biserial: float | None
    """Matched-pairs rank-biserial correlation: the favourable less the unfavourable share of the ranks, in [-1, 1]."""


class Discordance(StrictModel):
    """McNemar's exact test over matched trials, two-sided."""

    trials: int
    """Pairs of trials: the same task, the same repeat, both scored."""
    both: int
    only_first: int
    only_second: int
    neither: int
    p: float | None
    """None when there are no pairs."""
    cohens_h: float | None
    """Difference of the two success rates over those pairs, arcsine-transformed."""


class MeanDifference(StrictModel):
    """Difference of two means over tasks, with a percentile interval of the bootstrap over clusters of tasks."""

    difference: float
    clusters: int
    """Pairs of wordings, and tasks of their own: what was drawn anew, whole."""
    low: float | None
    """None for fewer than two clusters."""
    high: float | None


def signed_rank(differences: Sequence[float]) -> SignedRank:
    """Test whether the differences lie about 0.

    Args:
        differences: One for each task: the first agent's mean score less the second's.

    Source: Wilcoxon 1945; scipy's `wilcoxon`, whose choice between exact and approximate is taken; for the effect
        Kerby 2014, The simple difference formula.
    """
    # Without the last digits, in which means that are equal may differ and spoil the ties.
    nonzero = np.array([even for found in differences if (even := round(found, 9))])
    if not nonzero.size:
        return SignedRank(tasks=len(differences), nonzero=0, statistic=None, p=None, rank_biserial=None)
    found = stats.wilcoxon(nonzero)
    ranks = stats.rankdata(np.abs(nonzero))
    return SignedRank(
        tasks=len(differences),
        nonzero=len(nonzero),
        statistic=float(found.statistic),
        p=float(found.pvalue),
        rank_biserial=float(ranks[nonzero > 0].sum() - ranks[nonzero < 0].sum()) / float(ranks.sum()),
    )


def discordance(outcomes: Sequence[tuple[bool, bool]]) -> Discordance:
    """Test whether either agent succeeds more often where the other fails.

    Args:
        outcomes: Of each pair of trials whether the first and whether the second agent succeeded.

    Source: McNemar 1947, exact binomial form; statsmodels' `mcnemar`, `proportion_effectsize` (Cohen 1988).
    """
    counts = {(a, b): sum(pair == (a, b) for pair in outcomes) for a in (True, False) for b in (True, False)}
    both, first, second = counts[True, True], counts[True, False], counts[False, True]
    p = h = None
    if outcomes:
        p = float(mcnemar([[both, first], [second, counts[False, False]]], exact=True).pvalue)
        h = float(proportion_effectsize((both + first) / len(outcomes), (both + second) / len(outcomes)))
    return Discordance(
        trials=len(outcomes),
        both=both,
        only_first=first,
        only_second=second,
        neither=counts[False, False],
        p=p,
        cohens_h=h,
    )


def mean_difference(differences: Mapping[str, float], clusters: Mapping[str, str]) -> MeanDifference:
    """Return the mean of the differences and how sure it is, when tasks of a cluster are alike.

    Args:
        differences: By task; at least one.
        clusters: By task the name of its cluster; a task that is not in it is one of its own.

    Source: percentile cluster bootstrap (Davison and Hinkley 1997, section 3.8), by scipy's `bootstrap`: clusters are
        drawn with replacement, each with its sum and its size.
    """
    sums: dict[str, float] = {}
    sizes: dict[str, int] = {}
    for task, found in differences.items():
        name = clusters.get(task, task)
        sums[name] = sums.get(name, 0.0) + found
        sizes[name] = sizes.get(name, 0) + 1
    mean = round(sum(sums.values()) / len(differences), 12)
    if len(sums) < 2:
        return MeanDifference(difference=mean, clusters=len(sums), low=None, high=None)
    interval = stats.bootstrap(
        (list(sums.values()), list(sizes.values())),
        _ratio,
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        batch=max(1, 2_000_000 // len(sums)),
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    # Rounded, so that where all clusters are alike the ends are the mean.
    low, high = round(float(interval.low), 12), round(float(interval.high), 12)
    return MeanDifference(difference=mean, clusters=len(sums), low=low, high=high)


def _ratio(sums: np.ndarray, sizes: np.ndarray, axis: int = -1) -> np.ndarray:
    ratio: np.ndarray = sums.sum(axis=axis) / sizes.sum(axis=axis)
    return ratio


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values corrected for their number, by Holm's step-down; those that are None are not counted.

    Source: Holm 1979; statsmodels' `multipletests`.
    """
    known = [p for p in p_values if p is not None]
    # One alone needs no correction, and multipletests collects garbage each time, which takes long beside many records.
    corrected = iter(multipletests(known, method="holm")[1].tolist() if len(known) > 1 else known)
    return [None if p is None else float(next(corrected)) for p in p_values]
