"""Turning a final state into a verdict: getters, metrics, conjunction."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.getters import Missing, read_guest_file, read_host_file, read_script_output
from deskfork.evaluation.metrics.judged import Judged
from deskfork.evaluation.metrics.notebooks import compare_notebook_outputs
from deskfork.evaluation.metrics.tables import compare_csv
from deskfork.evaluation.metrics.text import check_include_exclude
from deskfork.records.trial import MetricOutcome, Verdict
from deskfork.sandbox.base import Guest
from deskfork.tasks.schema import (
    Check,
    CheckIncludeExclude,
    CompareCsv,
    CompareNotebookOutputs,
    GuestFile,
    Task,
)


def evaluate(
    task: Task, guest: Guest, keep_dir: Path, *, run_post_setup: Callable[[], object] | None = None
) -> Verdict:
    """Judge the state in which `guest` is.

    All checks are made, whatever the first ones gave, so that the record is complete. A check that cannot be judged has
    no score; the verdict has none either, unless the other checks alone decide it: a 0 under `and`, a 1 under `or`.

    Args:
        task: Whose evaluator to use.
        guest: The machine, after the agent has ended.
        keep_dir: Host folder for everything that is read from the guest; made if missing.
        run_post_setup: Runs the evaluator's `post_setup` steps; asked for only by tasks that have some.

    Returns:
        The verdict, with one outcome for each check.

    Raises:
        InfraError: The guest could not be asked: there is no verdict.
        EvaluationError: The task has post-setup steps, and `run_post_setup` was not given.
    """
    spec = task.evaluator
    if spec.post_setup:
        if run_post_setup is None:
            raise EvaluationError(f"task {task.id} has post-setup steps, which nobody ran")
        run_post_setup()
    keep_dir.mkdir(parents=True, exist_ok=True)
    reader = _Reader(guest, task.root, keep_dir)
    answers = [_judge(check, reader, place) for place, check in enumerate(spec.checks, start=1)]
    score = combine([answer.outcome.score for answer in answers], spec.conjunction)
    return Verdict(score=score, reason=_reason(answers, score), metrics=tuple(answer.outcome for answer in answers))


def combine(scores: list[float | None], conjunction: Literal["and", "or"]) -> float | None:
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


@dataclass(frozen=True)
class _Reader:
    guest: Guest
    root: Path
    keep_dir: Path

    def file(self, getter: GuestFile, place: int) -> bytes | Missing:
        return read_guest_file(getter, self.guest, self.keep_dir / f"{place}-{getter.path.name}")

    def text(self, check: CheckIncludeExclude, place: int) -> str | Missing:
        if isinstance(check.result, GuestFile):
            raw = self.file(check.result, place)
            return raw if isinstance(raw, Missing) else raw.decode(errors="replace")
        kept = self.keep_dir / f"{place}-{check.result.source.name}.stdout"
        return read_script_output(check.result, self.guest, self.root, kept)


def _judge(check: Check, reader: _Reader, place: int) -> _Answer:
    try:
        judged = _score(check, reader, place)
    except EvaluationError as error:
        return _Answer(MetricOutcome(metric=check.metric, score=None, detail=str(error)), was_compared=False)
    if isinstance(judged, Missing):
        return _Answer(MetricOutcome(metric=check.metric, score=0.0, detail=judged.detail), was_compared=False)
    return _Answer(MetricOutcome(metric=check.metric, score=float(judged), detail=judged.detail), was_compared=True)


def _score(check: Check, reader: _Reader, place: int) -> Judged | Missing:
    match check:
        case CompareCsv():
            gold = read_host_file(check.expected, reader.root)
            result = reader.file(check.result, place)
            if isinstance(result, Missing):
                return result
            options = check.options
            return compare_csv(
                result,
                gold,
                strict=options.strict,
                ignore_case=options.ignore_case,
                ignore_order=options.ignore_order,
            )
        case CheckIncludeExclude():
            text = reader.text(check, place)
            if isinstance(text, Missing):
                return text
            return check_include_exclude(text, include=check.expected.include, exclude=check.expected.exclude)
        case CompareNotebookOutputs():
            gold = read_host_file(check.expected, reader.root)
            result = reader.file(check.result, place)
            return result if isinstance(result, Missing) else compare_notebook_outputs(result, gold)


def _reason(answers: list[_Answer], score: float | None) -> str:
    """Say why there is no score, or why it is 0 without anything having been compared."""
    if score is None:
        blamed = [answer for answer in answers if answer.outcome.score is None]
    elif score == 0.0 and not any(answer.was_compared for answer in answers):
        blamed = answers
    else:
        return ""
    return "; ".join(dict.fromkeys(answer.outcome.detail for answer in blamed))
