"""The two of a pair, one goal worded abstract and verbose, reported side by side."""

from collections.abc import Mapping, Sequence

from deskfork.core.config import StrictModel
from deskfork.records.lock import TaskWording
from deskfork.report.trial import TrialReport
from deskfork.tasks.pairs import pair_name


class WordingReport(StrictModel):
    """One agent's trials of one task of a pair."""

    task: str
    trials: int
    scored: int
    """Trials that the means are taken over."""
    mean_score: float | None
    """None when no trial has a score."""
    mean_strict_score: float | None


class PairReport(StrictModel):
    """One agent at one goal in both wordings."""

    agent: str
    abstract: WordingReport
    verbose: WordingReport


def in_pairs(trials: Sequence[TrialReport], wordings: Mapping[str, TaskWording]) -> list[TrialReport]:
    """Return `trials` with what is known of their wording, those of a pair together, else in their order."""
    names = _pair_names(wordings)
    first: dict[str, int] = {}
    for place, trial in enumerate(trials):
        first.setdefault(names.get(trial.task, trial.task), place)
    worded = [
        trial.model_copy(update={"wording": wordings[trial.task].wording}) if trial.task in wordings else trial
        for trial in trials
    ]
    # Sorting is stable: the repeats of one task stay in their order.
    return sorted(worded, key=lambda trial: (first[names.get(trial.task, trial.task)], trial.wording or "", trial.task))


def report_pairs(trials: Sequence[TrialReport], wordings: Mapping[str, TaskWording]) -> tuple[PairReport, ...]:
    """Return for each agent the pairs of which there are trials in both wordings, in the order of the trials."""
    by_task: dict[tuple[str, str], list[TrialReport]] = {}
    for trial in trials:
        by_task.setdefault((trial.agent, trial.task), []).append(trial)
    return tuple(
        PairReport(agent=agent, abstract=_wording(task, abstract), verbose=_wording(other, by_task[agent, other]))
        for (agent, task), abstract in by_task.items()
        if (other := _other(task, wordings)) is not None and (agent, other) in by_task
    )


def mean(scores: Sequence[float]) -> float | None:
    """Return the mean; None when there is nothing to take it of."""
    return sum(scores) / len(scores) if scores else None


def _other(task: str, wordings: Mapping[str, TaskWording]) -> str | None:
    """Return the verbose counterpart of an abstract task."""
    known = wordings.get(task)
    if known is None or known.wording != "abstract":
        return None
    other = wordings.get(known.counterpart)
    return known.counterpart if other and (other.wording, other.counterpart) == ("verbose", task) else None


def _pair_names(wordings: Mapping[str, TaskWording]) -> dict[str, str]:
    counterparts: dict[str, str | None] = {task: known.counterpart for task, known in wordings.items()}
    return {task: pair_name(task, counterpart, counterparts) for task, counterpart in counterparts.items()}


def _wording(task: str, trials: Sequence[TrialReport]) -> WordingReport:
    scores = [trial.score for trial in trials if trial.score is not None]
    return WordingReport(
        task=task,
        trials=len(trials),
        scored=len(scores),
        mean_score=mean(scores),
        mean_strict_score=mean([trial.strict_score for trial in trials if trial.strict_score is not None]),
    )
