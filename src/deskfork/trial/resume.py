"""Going on with a run that was cut off: nothing that ended is repeated, nothing that was left is lost."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from deskfork.core.atomic import write_atomic
from deskfork.core.errors import ConfigError, InfraError
from deskfork.records.claim import claimed
from deskfork.records.lock import RunLock
from deskfork.records.paths import folder_name
from deskfork.records.reader import AttemptRecord, RunRecords, find_run, read_run, read_trajectory
from deskfork.records.sums import actions_of, lines_of, tokens_of
from deskfork.records.trial import TrialResult, TrialStatus, Verdict
from deskfork.sandbox.base import SandboxProvider
from deskfork.trial.config import resolve_config
from deskfork.trial.lock import make_lock
from deskfork.trial.plan import Notify, TrialPlan
from deskfork.trial.prepare import prepare
from deskfork.trial.run import Beginning, OnBegin, RunSummary, carry_out, open_engine, write_ingredients
from deskfork.trial.trial import is_over

_CUT_OFF = "its process ended before it did; recorded when the run was resumed"
_SHOWN = 5
"""Differences that are named."""


def resume_run(
    run_dir: Path, *, notify: Notify, on_begin: OnBegin, provider: SandboxProvider | None = None
) -> RunSummary:
    """Run what a run has not got to yet.

    Attempts that were cut off are kept as they are, with a result that says so, and their trials get a further one.

    Args:
        run_dir: Its directory.
        notify: See `start_run`.
        on_begin: See `start_run`.
        provider: In place of the one that the run was begun with; closed at the end.

    Raises:
        ConfigError: It is no run directory, another process works on it, or tasks, agents or templates are not what
            they were; nothing was started.
        InfraError: The provider, a local model or the run directory failed.
    """
    with ExitStack() as stack:
        stack.enter_context(claimed(find_run(run_dir)))
        records = read_run(run_dir)
        config = resolve_config(records.paths.config, {})
        prepared = prepare(config)
        engine = open_engine(config, records.lock.provider if records.lock else config.provider, provider)
        stack.callback(engine.close)
        templates = engine.templates(prepared.tasks)
        lock = make_lock(records.paths.id, engine.provider, templates, prepared)
        if records.lock is None:
            # Cut off before its first trial.
            write_ingredients(records.paths, config, prepared, lock)
        else:
            # Each node of a cluster has templates of its own making; each result names the one that it was forked from.
            _require_same(records.lock, lock, run_dir, with_templates=config.engine == "local")
        slots = engine.slots(config, templates)
        earlier = _attempts(records, {plan.key: plan for plan in prepared.plans})
        ended = tuple(attempts[-1] for attempts in earlier.values() if is_over(attempts))
        on_begin(Beginning(records.paths.root, prepared, slots, ended))
        return carry_out(config, prepared, records.paths, engine, slots, notify=notify, earlier=earlier)


def _require_same(then: RunLock, now: RunLock, run_dir: Path, *, with_templates: bool) -> None:
    templates = [{found.name: found.digest for found in lock.templates} for lock in (then, now)]
    differences = [
        *_changes("task", then.tasks, now.tasks),
        *_changes("agent", *({str(agent["name"]): agent for agent in lock.agents} for lock in (then, now))),
        *_changes("script", then.scripts, now.scripts),
        *(_changes("template", *templates) if with_templates else ()),
    ]
    if differences:
        more = f" and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
        raise ConfigError(
            f"{run_dir} cannot be resumed: {', '.join(differences[:_SHOWN])}{more}; its results would be of two kinds:"
            f" put back what was there, or begin anew with `deskfork run start {run_dir}/run.yaml`"
        )


def _changes(kind: str, then: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    for name in sorted(then.keys() | now.keys()):
        if name not in now:
            yield f"{kind} {name} is not there any more"
        elif name not in then:
            yield f"{kind} {name} is new"
        elif then[name] != now[name]:
            yield f"{kind} {name} is not what it was"


def _attempts(
    records: RunRecords, plans: Mapping[tuple[str, str, int], TrialPlan]
) -> dict[tuple[str, str, int], Sequence[TrialResult]]:
    """Return the results of all attempts by trial; those that were cut off get one."""
    found = defaultdict[tuple[str, str, int], list[TrialResult]](list)
    # The names of its folders are all that is known of an attempt that was cut off.
    names = {(folder_name(task), folder_name(agent), n): plan for (task, agent, n), plan in plans.items()}
    for record in records.attempts:
        known = names if record.result is None else plans
        plan = known.get((record.task, record.agent, record.repeat))
        if plan is None:
            raise ConfigError(f"{record.paths.root} is of no trial of this run; move it out of the run directory")
        found[plan.key].append(record.result or _close(record, plan, records.lock))
    return dict(found)


def _close(record: AttemptRecord, plan: TrialPlan, lock: RunLock | None) -> TrialResult:
    """Give an attempt that was cut off the result that it has: that it was cancelled."""
    steps = read_trajectory(record.paths) if record.paths.trajectory.exists() else ()
    tokens = tokens_of(steps)
    begun_s, ended_s = _times(record.paths.root)
    result = TrialResult(
        task=plan.task.id,
        agent=plan.agent.name,
        model=plan.model,
        repeat=plan.repeat,
        attempt=record.attempt,
        status=TrialStatus.CANCELLED,
        score=None,
        verdict=Verdict(reason=_CUT_OFF),
        error=f"cut off: {_CUT_OFF}",
        steps=len(steps),
        tokens=tokens,
        cost_usd=plan.cost_usd(tokens),
        duration_s=ended_s - begun_s,
        phases_s={},
        action_mix=actions_of(steps),
        line_mix=lines_of(steps),
        started_at=datetime.fromtimestamp(begun_s, UTC),
        provider=lock.provider if lock else "",
        template_digest="",
    )
    try:
        write_atomic(record.paths.result, result.model_dump_json(indent=2) + "\n")
    except OSError as error:
        raise InfraError(f"{record.paths.result}: could not be written: {error.strerror or error}") from error
    return result


def _times(folder: Path) -> tuple[float, float]:
    """Return, in seconds since 1970, when the first and the last change was made to what lies in a folder."""
    changes = [entry.stat().st_mtime for entry in (folder, *folder.iterdir())]
    return min(changes), max(changes)
