"""Whether a task can be trusted: its solution solves it, nothing less does, and its verdict is the same each time."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from deskfork.agent.config import NullConfig, OracleConfig
from deskfork.core.config import StrictModel
from deskfork.core.errors import EvaluationError, InfraError
from deskfork.evaluation.evidence import Evidence, EvidenceIndex, KeptFile, read_evidence, write_evidence
from deskfork.evaluation.judge import judge
from deskfork.evaluation.mutations import mutate
from deskfork.records.paths import AttemptPaths, RunPaths
from deskfork.records.trial import TrialResult, TrialStatus, Verdict
from deskfork.tasks.load import open_source
from deskfork.tasks.schema import Task
from deskfork.trial.config import RunConfig
from deskfork.trial.plan import Notify
from deskfork.trial.run import OnBegin, RunSummary, start_run

EVALUATIONS = 3
"""How often the oracle's end state is judged."""


class CheckedState(StrictModel):
    """One end state and what it was given."""

    name: str
    """null, oracle, or the mutation."""
    score: float | None
    strict_score: float | None
    detail: str = ""

    @classmethod
    def of(cls, name: str, verdict: Verdict) -> Self:
        """Sum up a verdict."""
        details = [outcome.strict_detail or outcome.detail for outcome in verdict.metrics]
        detail = verdict.reason or verdict.difference or "; ".join(filter(None, details))
        return cls(name=name, score=verdict.score, strict_score=verdict.strict_score, detail=detail)


class TaskCheck(StrictModel):
    """What is known of a task; a property is None where something kept it from being found out."""

    task: str
    solvable: bool | None
    """The solution passes, in both verdicts."""
    discriminating: bool | None
    """Doing nothing fails in both verdicts, and every mutation of the solution's end state in the strict one."""
    stable: bool | None
    """Judging one end state again gives the same verdict."""
    states: tuple[CheckedState, ...]
    problems: tuple[str, ...]
    """Why a property does not hold, or is not known."""

    @property
    def is_sound(self) -> bool:
        """Whether the task can be trusted."""
        return bool(self.solvable and self.discriminating and self.stable)


@dataclass(frozen=True)
class Checked:
    """What became of a check of tasks."""

    tasks: tuple[TaskCheck, ...]
    signal_number: int | None = None
    """The signal that cut it short, if one did."""


def check_tasks(config: RunConfig, *, notify: Notify, on_begin: OnBegin) -> Checked:
    """Run the null agent and the oracle on each task, and see what their end states are worth.

    Args:
        config: Source, tasks, provider and how many at once; `out` is where the two runs are kept.
        notify: Told of everything that a trial reaches.
        on_begin: Told of each run's directory and plan.

    Raises:
        ConfigError: The runs cannot be begun.
        InfraError: The provider or the run directories failed.
    """
    done: dict[str, RunSummary] = {}
    agents = (NullConfig(), 1), (OracleConfig(), EVALUATIONS)
    for agent, evaluations in agents:
        asked = config.model_copy(update={"agents": (agent,), "repeats": 1, "evaluations": evaluations})
        done[agent.name] = last = start_run(asked, notify=notify, on_begin=on_begin)
        if last.signal_number is not None:
            break
    source = open_source(config.source)
    skipped = {task: why for summary in done.values() for task, why in summary.skipped.items()}
    checks = []
    for task in sorted({result.task for summary in done.values() for result in summary.results} | skipped.keys()):
        if task in skipped:
            checks.append(_unchecked(task, skipped[task]))
            continue
        null, oracle = (_result_of(done.get(agent), task) for agent in ("null", "oracle"))
        run_dir = done["oracle"].run_dir if "oracle" in done else config.out
        checks.append(check_task(source.load(task), null, oracle, run_dir))
    return Checked(tuple(checks), last.signal_number)


def _unchecked(task: str, why: str) -> TaskCheck:
    return TaskCheck(task=task, solvable=None, discriminating=None, stable=None, states=(), problems=(why,))


def _result_of(summary: RunSummary | None, task: str) -> TrialResult | None:
    return next((result for result in summary.results if result.task == task), None) if summary else None


def check_task(task: Task, null: TrialResult | None, oracle: TrialResult | None, oracle_run: Path) -> TaskCheck:
    """Sum up a trial of the null agent and one of the oracle, judging mutations of what the oracle left.

    Args:
        task: The task of both.
        null: The null agent's result; None when there is none.
        oracle: The oracle's result.
        oracle_run: The oracle's run directory; mutated end states are added to the trial's folder.

    Raises:
        InfraError: Mutated end states could not be written.
    """
    states: list[CheckedState] = []
    problems: list[str] = []
    nothing = _ended(null, "null", states, problems)
    solved = _ended(oracle, "oracle", states, problems)
    if nothing and (nothing.score, nothing.strict_score) != (0.0, 0.0):
        problems.append(f"doing nothing scores {nothing.score} (strict: {nothing.strict_score})")
    solvable = None if solved is None else (solved.score, solved.strict_score) == (1.0, 1.0)
    if solved and not solvable:
        problems.append(f"the solution scores {solved.score} (strict: {solved.strict_score}): {solved.detail}")
    discriminating = stable = None
    if oracle is not None and solvable:
        kept = RunPaths(oracle_run).attempt(task.id, oracle.agent, oracle.repeat, oracle.attempt)
        stable = _is_stable(task, kept, problems)
        is_refused = _refuses_mutations(task, kept, states, problems)
        if nothing is not None and is_refused is not None:
            discriminating = nothing.score == nothing.strict_score == 0.0 and is_refused
    return TaskCheck(
        task=task.id,
        solvable=solvable,
        discriminating=discriminating,
        stable=stable,
        states=tuple(states),
        problems=tuple(problems),
    )


def _ended(
    result: TrialResult | None, name: str, states: list[CheckedState], problems: list[str]
) -> CheckedState | None:
    if result is None:
        problems.append(f"{name}: the trial never began")
        return None
    state = CheckedState.of(name, result.verdict)
    states.append(state)
    if state.score is None or state.strict_score is None or result.status is TrialStatus.INFRA_ERROR:
        problems.append(f"{name}: no score: {state.detail or result.error}")
        return None
    return state


def _is_stable(task: Task, kept: AttemptPaths, problems: list[str]) -> bool | None:
    verdicts = []
    for number in range(EVALUATIONS):
        directory = kept.evidence(number)
        try:
            verdicts.append(judge(task, read_evidence(directory), directory))
        except EvaluationError as error:
            problems.append(f"evaluation {number + 1}: {error}")
            return None
    scores = [(verdict.score, verdict.strict_score) for verdict in verdicts]
    if len(set(scores)) > 1:
        problems.append(f"one end state was judged {scores}")
    return len(set(scores)) == 1


def _refuses_mutations(task: Task, kept: AttemptPaths, states: list[CheckedState], problems: list[str]) -> bool | None:
    """Judge mutations of each check's result alone."""
    is_refused = True
    try:
        index = read_evidence(kept.guest)
        for name, mutated in _mutations(task, index, kept):
            verdict = judge(task, *mutated)
            states.append(CheckedState.of(name, verdict))
            if verdict.strict_score != 0.0:
                problems.append(f"the end state with {name} scores {verdict.strict_score} in the strict verdict")
                is_refused = False
    except EvaluationError as error:
        problems.append(str(error))
        return None
    return is_refused


def _mutations(
    task: Task, index: EvidenceIndex, kept: AttemptPaths
) -> Iterable[tuple[str, tuple[EvidenceIndex, Path]]]:
    alike = len({check.result.model_dump_json() for check in task.evaluator.checks}) == 1
    for check, evidence in zip(task.evaluator.checks, index.evidence, strict=True):
        if evidence.file is None:
            continue
        for kind, content in mutate(check, evidence.content(kept.guest)):
            name = kind if alike else f"{kind} (check {evidence.check})"
            # Checks that read one file all see what was done to it.
            touched = index.evidence if alike else (evidence,)
            yield name, _write(index, touched, content, kept.root / "mutations" / name.replace(" ", "-"))
        if alike:
            return


def _write(
    index: EvidenceIndex, touched: tuple[Evidence, ...], content: bytes, directory: Path
) -> tuple[EvidenceIndex, Path]:
    file = KeptFile(name="mutated", size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    changed = tuple(
        entry.model_copy(update={"file": file, "state": "read"}) if entry in touched else entry
        for entry in index.evidence
    )
    written = index.model_copy(update={"evidence": changed})
    try:
        directory.mkdir(parents=True)
        (directory / file.name).write_bytes(content)
    except OSError as error:
        raise InfraError(f"{directory}: a mutated end state could not be written: {error}") from error
    write_evidence(directory, written)
    return written, directory
