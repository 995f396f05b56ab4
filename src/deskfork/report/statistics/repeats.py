"""What several trials of the same tasks tell of an agent: solved at least once, solved every time."""

from collections.abc import Sequence
from math import comb

from deskfork.core.config import StrictModel

_ALL_UP_TO = 8
"""Every k up to here is told, and the largest."""


class PassAt(StrictModel):
    """Of k trials of a task drawn from those there are: one at least succeeds, or all do."""

    k: int
    tasks: int
    """With at least k scored trials; the others are left out."""
    left_out: int
    any_of: float
    """pass@k, the mean over those tasks."""
    all_of: float
    """pass^k, the mean over those tasks."""


def pass_at(trials: int, successes: int, k: int) -> float:
    """Return the probability that one of `k` trials drawn without replacement is a success: unbiased pass@k.

    Args:
        trials: How many there are, at least `k`.
        successes: How many of them succeeded.
        k: How many are drawn, at least 1.

    Source: Chen et al. 2021, Evaluating Large Language Models Trained on Code, section 2.1.
    """
    return (comb(trials, k) - comb(trials - successes, k)) / comb(trials, k)


def pass_all(trials: int, successes: int, k: int) -> float:
    """Return the probability that all of `k` trials drawn without replacement are successes: pass^k.

    Source: Yao et al. 2024, tau-bench, section 4.
    """
    return comb(successes, k) / comb(trials, k)


def passes(tasks: Sequence[tuple[int, int]]) -> tuple[PassAt, ...]:
    """Return pass@k and pass^k for each k that some task has enough trials for; nothing where no task was repeated.

    Args:
        tasks: Of each task its scored trials, and how many of them succeeded.
    """
    most = max((trials for trials, _ in tasks), default=0)
    if most < 2:
        return ()
    wanted = [k for k in range(1, most + 1) if k <= _ALL_UP_TO or k == most]
    return tuple(_pass(tasks, k) for k in wanted)


def _pass(tasks: Sequence[tuple[int, int]], k: int) -> PassAt:
    enough = [task for task in tasks if task[0] >= k]
    return PassAt(
        k=k,
        tasks=len(enough),
        left_out=len(tasks) - len(enough),
        any_of=sum(pass_at(trials, successes, k) for trials, successes in enough) / len(enough),
        all_of=sum(pass_all(trials, successes, k) for trials, successes in enough) / len(enough),
    )
