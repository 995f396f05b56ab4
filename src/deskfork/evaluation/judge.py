"""Turning kept evidence into a verdict: metrics, conjunction. Needs no machine, so it can be done again."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.evidence import Evidence, EvidenceIndex
from deskfork.evaluation.getters import read_host_file
from deskfork.evaluation.metrics.images import compare_jupyterlab_images
from deskfork.evaluation.metrics.judged import Comparison, Judged
from deskfork.evaluation.metrics.notebooks import (
    are_jupyter_outputs_cleared,
    compare_ipynb_files,
    compare_notebook_cells,
    compare_notebook_outputs,
    is_jupyter_cell_executed,
)
from deskfork.evaluation.metrics.tables import compare_csv
from deskfork.evaluation.metrics.text import check_include_exclude, compare_text_file
from deskfork.evaluation.metrics.urls import is_expected_url_pattern_match
from deskfork.evaluation.original import original_file
from deskfork.records.trial import MetricOutcome, Verdict
from deskfork.tasks.checks import (
    AreJupyterOutputsCleared,
    Check,
    CheckIncludeExclude,
    CompareCsv,
    CompareIpynbFiles,
    CompareJupyterlabImages,
    CompareNotebookCells,
    CompareNotebookOutputs,
    CompareTextFile,
    IsExpectedUrlPatternMatch,
    IsJupyterCellExecuted,
)
from deskfork.tasks.schema import Task

GoldCheck = CompareCsv | CompareTextFile | CompareJupyterlabImages | CompareNotebookCells | CompareIpynbFiles


def judge(task: Task, index: EvidenceIndex, directory: Path) -> Verdict:
    """Judge a final state by what was read of it.

    All checks are made, whatever the first ones gave, so that the record is complete. A check that cannot be judged has
    no score; the verdict has none either, unless the other checks alone decide it: a 0 under `and`, a 1 under `or`.

    Args:
        task: Whose evaluator to use.
        index: What was read.
        directory: Where that was kept.

    Returns:
        The verdict, with one outcome for each check.

    Raises:
        EvaluationError: The evidence is of another task, or of other checks.
    """
    checks = task.evaluator.checks
    if index.task != task.id or [entry.check for entry in index.evidence] != list(range(1, len(checks) + 1)):
        raise EvaluationError(
            f"{directory}: the evidence was read for {index.task} with {len(index.evidence)} checks, "
            f"not for {task.id} with {len(checks)}: the task was changed, and must be run again"
        )
    answers = [_judge(task, *pair, directory) for pair in zip(checks, index.evidence, strict=True)]
    outcomes = tuple(answer.outcome for answer in answers)
    conjunction = task.evaluator.conjunction
    score = combine([outcome.score for outcome in outcomes], conjunction)
    strict_score = combine([outcome.strict_score for outcome in outcomes], conjunction)
    return Verdict(
        score=score,
        strict_score=strict_score,
        reason=_reason(answers, score),
        difference="" if score == strict_score else _difference(outcomes),
        metrics=outcomes,
    )


def combine(scores: Sequence[float | None], conjunction: Literal["and", "or"]) -> float | None:
    """Combine the scores of checks, None standing for one that could not be judged.

    Returns:
        `and`: 0 if any score is 0, else the mean. `or`: the highest. None if a missing score could change that.

    Source: xlang-ai/Spider2-V, desktop_env/envs/desktop_env.py, `evaluate`.
    """
    known = [score for score in scores if score is not None]
    if conjunction == "and" and 0.0 in known:
        return 0.0
    if conjunction == "or" and 1.0 in known:
        return 1.0
    if len(known) < len(scores):
        return None
    return sum(known) / len(known) if conjunction == "and" else max(known)


@dataclass(frozen=True)
class _Answer:
    outcome: MetricOutcome
    was_compared: bool


def _judge(task: Task, check: Check, evidence: Evidence, directory: Path) -> _Answer:
    if evidence.state == "missing":
        nothing = Comparison.agreed(Judged(0.0, evidence.detail))
        return _Answer(_outcome(check, nothing), was_compared=False)
    try:
        if evidence.state == "unread":
            raise EvaluationError(evidence.detail)
        compared = _compare(check, evidence.content(directory), task)
    except EvaluationError as error:
        absent = MetricOutcome(
            metric=check.metric, score=None, detail=str(error), strict_score=None, strict_detail=str(error)
        )
        return _Answer(absent, was_compared=False)
    return _Answer(_outcome(check, compared), was_compared=True)


def _outcome(check: Check, compared: Comparison) -> MetricOutcome:
    return MetricOutcome(
        metric=check.metric,
        score=float(compared.upstream),
        detail=compared.upstream.detail,
        strict_score=float(compared.strict),
        strict_detail=compared.strict.detail,
    )


def _compare(check: Check, result: bytes, task: Task) -> Comparison:
    match check:
        case CheckIncludeExclude():
            text = result.decode(errors="replace")
            return check_include_exclude(text, include=check.expected.include, exclude=check.expected.exclude)
        case IsExpectedUrlPatternMatch():
            return is_expected_url_pattern_match(result.decode(errors="replace"), patterns=check.expected.patterns)
        case IsJupyterCellExecuted():
            return is_jupyter_cell_executed(result, original=original_file(task, check.result.path))
        case AreJupyterOutputsCleared():
            return are_jupyter_outputs_cleared(result, original=original_file(task, check.result.path))
        case CompareNotebookOutputs():
            gold = read_host_file(check.expected, task.root)
            return compare_notebook_outputs(result, gold, original=original_file(task, check.result.path))
        case _:
            return _compare_with_gold(check, result, read_host_file(check.expected, task.root))


def _compare_with_gold(check: GoldCheck, result: bytes, gold: bytes) -> Comparison:
    match check:
        case CompareCsv(options=options):
            return compare_csv(
                result,
                gold,
                strict=options.strict,
                ignore_case=options.ignore_case,
                ignore_order=options.ignore_order,
            )
        case CompareTextFile(options=options):
            return compare_text_file(result, gold, ignore_blanks=options.ignore_blanks, ignore_case=options.ignore_case)
        case CompareJupyterlabImages():
            return compare_jupyterlab_images(result, gold)
        case CompareNotebookCells():
            return compare_notebook_cells(result, gold)
        case CompareIpynbFiles():
            return compare_ipynb_files(result, gold)


def _reason(answers: list[_Answer], score: float | None) -> str:
    """Say why there is no score, or why it is 0 without anything having been compared."""
    if score is None:
        blamed = [answer for answer in answers if answer.outcome.score is None]
    elif score == 0.0 and not any(answer.was_compared for answer in answers):
        blamed = answers
    else:
        return ""
    return "; ".join(dict.fromkeys(answer.outcome.detail for answer in blamed))


def _difference(outcomes: tuple[MetricOutcome, ...]) -> str:
    """Say why the two scores differ."""
    said = []
    for outcome in outcomes:
        if outcome.score != outcome.strict_score:
            upstream, strict = outcome.detail or "is content", outcome.strict_detail or "is content"
            said.append(
                f"{outcome.metric}: upstream ({outcome.score}): {upstream}; strict ({outcome.strict_score}): {strict}"
            )
    return "; ".join(dict.fromkeys(said))


def _because(detail: str) -> str:
    return f" ({detail})" if detail else ""
