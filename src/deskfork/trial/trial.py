"""One trial: an attempt, and another where the first says nothing about the agent."""

from functools import partial

from deskfork.core.errors import InfraError
from deskfork.core.tracing import Attribute, span
from deskfork.records.paths import AttemptPaths
from deskfork.records.recorder import TrialRecorder
from deskfork.records.trial import TrialResult, TrialStatus
from deskfork.trial.attempt import Attempt
from deskfork.trial.plan import TrialEvent, TrialPlan, TrialSetting

_RETRIED_PHASES = ("fork", "setup")


def run_trial(plan: TrialPlan, setting: TrialSetting) -> TrialResult:
    """Run one trial; every attempt leaves its own folder.

    A fork or set-up that failed is tried once more: the agent had no part in it. A sandbox that died in one of the
    agent's own cells is tried once more as well; when it dies there again, the agent is taken to have destroyed it.

    Returns:
        The last attempt, which is the one that counts.
    """
    losses = failures = number = 0
    while True:
        attempt, result = _run_attempt(plan, setting, number, losses)
        losses += result.status is TrialStatus.SANDBOX_LOST
        is_early = result.status is TrialStatus.INFRA_ERROR and attempt.phase in _RETRIED_PHASES
        failures += is_early
        may_repeat = (result.status is TrialStatus.SANDBOX_LOST and losses == 1) or (is_early and failures == 1)
        is_last = not may_repeat or setting.cancelled.is_set()
        setting.notify(TrialEvent(plan, number, "ended", result.steps, result, is_last))
        if is_last:
            return result
        number += 1


def _run_attempt(
    plan: TrialPlan, setting: TrialSetting, number: int, earlier_losses: int
) -> tuple[Attempt, TrialResult]:
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
    return attempt, result


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
