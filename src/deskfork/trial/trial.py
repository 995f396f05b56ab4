"""One trial: an attempt, and another where the first says nothing about the agent."""

from collections.abc import Sequence
from functools import partial

from deskfork.core.errors import InfraError
from deskfork.core.tracing import Attribute, span
from deskfork.records.paths import AttemptPaths
from deskfork.records.recorder import TrialRecorder
from deskfork.records.trial import TrialResult, TrialStatus
from deskfork.trial.attempt import Attempt
from deskfork.trial.plan import TrialEvent, TrialPlan, TrialSetting

_NODES_LOST = 3
"""How often an attempt of which nothing is known, whose cluster node was lost, is made again."""


def is_over(attempts: Sequence[TrialResult]) -> bool:
    """Return whether a trial with these attempts, the earliest first, needs no further one.

    A fork or set-up that failed is tried once more: the agent had no part in it. A sandbox that died in one of the
    agent's own cells is tried once more as well; when it dies there again, the agent is taken to have destroyed it.
    An attempt that was cancelled, or lost with the node that it ran on, says nothing.
    """
    if not attempts or attempts[-1].status is TrialStatus.CANCELLED:
        return False
    if attempts[-1].status is TrialStatus.SANDBOX_LOST:
        return losses(attempts) > 1
    if not _failed_early(attempts[-1]):
        return True
    has_begun = bool(attempts[-1].phases_s)
    alike = sum(_failed_early(attempt) and bool(attempt.phases_s) is has_begun for attempt in attempts)
    return alike > (1 if has_begun else _NODES_LOST)


def run_trial(plan: TrialPlan, setting: TrialSetting, earlier: Sequence[TrialResult] = ()) -> TrialResult:
    """Run one trial until it is over; every attempt leaves its own folder.

    Args:
        plan: What to run.
        setting: How.
        earlier: The attempts that it had before the run was resumed.

    Returns:
        The last attempt, which is the one that counts.
    """
    attempts = list(earlier)
    while True:
        number = attempts[-1].attempt + 1 if attempts else 0
        result = run_attempt(plan, setting, number, losses(attempts))
        attempts.append(result)
        is_last = is_over(attempts) or setting.cancelled.is_set() or bool(setting.ledger.spent())
        setting.notify(TrialEvent(plan, number, "ended", result.steps, result, is_last))
        if is_last:
            return result


def losses(attempts: Sequence[TrialResult]) -> int:
    """Return in how many attempts the sandbox died in the agent's own cells."""
    return sum(attempt.status is TrialStatus.SANDBOX_LOST for attempt in attempts)


def _failed_early(attempt: TrialResult) -> bool:
    return attempt.status is TrialStatus.INFRA_ERROR and "agent" not in attempt.phases_s


def run_attempt(plan: TrialPlan, setting: TrialSetting, number: int, earlier_losses: int) -> TrialResult:
    """Run one attempt and record it; whatever happens in it is its result.

    Args:
        plan: What to run.
        setting: How.
        number: Which attempt of the trial it is, from 0.
        earlier_losses: How many sandboxes earlier attempts lost.
    """
    attempt = Attempt(plan, setting, number, earlier_losses)
    paths = setting.paths.attempt(plan.task.id, plan.agent.name, plan.repeat, number)
    about: dict[str, Attribute] = {
        "deskfork.task": plan.task.id,
        "deskfork.agent": plan.agent.name,
        "deskfork.repeat": plan.repeat,
        "deskfork.attempt": number,
    }
    with span("trial", about, parent=setting.parent) as current:
        result = _record_attempt(attempt, paths, setting)
        current.set_attribute("deskfork.status", result.status.value)
        if result.score is not None:
            current.set_attribute("deskfork.score", result.score)
    return result


def _record_attempt(attempt: Attempt, paths: AttemptPaths, setting: TrialSetting) -> TrialResult:
    try:
        recorder = TrialRecorder(paths)
    except InfraError as error:
        attempt.fail_to_record(error)
        return attempt.result()
    abandon = partial(_abandon, attempt, recorder)
    setting.ongoing.append(abandon)
    try:
        _play(attempt, recorder)
        return _write_result(attempt, recorder) if attempt.may_record() else attempt.result()
    finally:
        setting.ongoing.remove(abandon)


def _play(attempt: Attempt, recorder: TrialRecorder) -> None:
    try:
        with recorder:
            attempt.play(recorder)
    except InfraError as error:
        attempt.fail_to_record(error)


def _abandon(attempt: Attempt, recorder: TrialRecorder) -> TrialResult | None:
    if not attempt.may_record():
        return None
    attempt.cancel()
    return _write_result(attempt, recorder)


def _write_result(attempt: Attempt, recorder: TrialRecorder) -> TrialResult:
    result = attempt.result()
    try:
        recorder.write_result(result)
    except InfraError as error:
        attempt.fail_to_record(error)
        return attempt.result()
    return result
