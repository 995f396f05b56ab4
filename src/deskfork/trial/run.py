"""One run: many trials, one directory."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event

import yaml

from deskfork.core.atomic import write_atomic
from deskfork.core.config import cache_dir
from deskfork.core.errors import InfraError
from deskfork.core.tracing import current_context, span
from deskfork.records.claim import claimed
from deskfork.records.lock import RunLock
from deskfork.records.paths import RunPaths, create_run
from deskfork.records.trial import TrialResult, TrialStatus
from deskfork.sandbox.base import SandboxProvider, TemplateFacts
from deskfork.sandbox.open import open_provider
from deskfork.trial.budget import RunLedger
from deskfork.trial.capacity import Slots, choose_slots, measure_capacity, sandbox_mib
from deskfork.trial.config import RunConfig
from deskfork.trial.engines.local import run_jobs
from deskfork.trial.interrupt import ends_on_signals
from deskfork.trial.lock import make_lock
from deskfork.trial.plan import Notify, TrialSetting
from deskfork.trial.prepare import Preparation, describe_templates, prepare
from deskfork.trial.trial import is_over, run_trial

Attempts = Mapping[tuple[str, str, int], Sequence[TrialResult]]
"""What is there of each trial (see `TrialPlan.key`), its earliest attempt first."""


@dataclass(frozen=True)
class Beginning:
    """What is known of a run just before its first trial."""

    run_dir: Path
    prepared: Preparation
    slots: Slots
    ended: tuple[TrialResult, ...] = ()
    """Of trials that need not be run again, where the run is resumed."""


OnBegin = Callable[[Beginning], None]


@dataclass(frozen=True)
class RunSummary:
    """What became of a run."""

    run_dir: Path
    results: tuple[TrialResult, ...]
    """The attempt that counts of each trial, in the order of the plan; trials that never began have none."""
    planned: int
    skipped: dict[str, str]
    """Why a task was left out, by its id."""
    signal_number: int | None = None
    """The signal that cancelled the run, if one did."""
    budget_reached: str = ""
    """Which of the run's budgets was reached, in words; empty when none was."""

    @property
    def not_begun(self) -> int:
        """How many trials never began, or were cut off before the run was resumed and not begun again."""
        return self.planned - sum(result.status is not TrialStatus.CANCELLED for result in self.results)


def start_run(
    config: RunConfig, *, notify: Notify, on_begin: OnBegin, provider: SandboxProvider | None = None
) -> RunSummary:
    """Run all trials of `config`.

    Args:
        config: What to run.
        notify: Told of everything that a trial reaches, from whichever thread it runs in.
        on_begin: Told once of the run's directory and plan, before the first trial.
        provider: Opens the sandboxes in place of the provider that `config` names; closed at the end as well.

    Raises:
        ConfigError: The run cannot be begun; nothing was started and nothing written.
        InfraError: The provider, a local model or the run directory failed.
    """
    prepared = prepare(config)
    with ExitStack() as stack:
        opened = provider or open_provider(config.provider, cache_dir())
        stack.callback(opened.close)
        templates = describe_templates(opened, prepared.tasks)
        slots = slots_for(config, opened, templates)
        paths = create_run(config.out)
        stack.enter_context(claimed(paths))
        write_ingredients(paths, config, prepared, make_lock(paths.id, opened.name, templates, prepared))
        on_begin(Beginning(paths.root, prepared, slots))
        return carry_out(config, prepared, paths, opened, slots, notify=notify, earlier={})


def slots_for(config: RunConfig, provider: SandboxProvider, templates: Sequence[TemplateFacts]) -> Slots:
    """Return how many trials run at the same time on this machine as it is now.

    Raises:
        ConfigError: As many as were asked for do not fit.
    """
    accelerations = {template.acceleration for template in templates}
    need_mib = sandbox_mib(provider.name, "kvm" if accelerations == {"kvm"} else "tcg")
    return choose_slots(config.parallel, need_mib, measure_capacity())


def carry_out(
    config: RunConfig,
    prepared: Preparation,
    paths: RunPaths,
    provider: SandboxProvider,
    slots: Slots,
    *,
    notify: Notify,
    earlier: Attempts,
) -> RunSummary:
    """Run every trial that is not over yet, and sum up all of them.

    Args:
        config: The run's.
        prepared: What it is going to do.
        paths: Its directory, which the caller has claimed.
        provider: Opens the sandboxes; closed at the end.
        slots: How many trials at the same time.
        notify: See `start_run`.
        earlier: What the run has of each trial already.
    """
    cancelled = Event()
    ledger = _ledger(config, earlier)
    attributes = {
        "deskfork.run": paths.id,
        "deskfork.agent": ", ".join(agent.name for agent in config.agents),
        "deskfork.provider": provider.name,
    }
    with ends_on_signals(cancelled) as stop, span("run", attributes):
        setting = TrialSetting(
            provider=provider,
            paths=paths,
            limits=config.limits,
            setup_timeout_s=config.setup_timeout_s,
            network=config.network,
            notify=notify,
            ledger=ledger,
            keep_state=config.keep_state,
            evaluations=config.evaluations,
            cache=config.cache,
            parent=current_context(),
            cancelled=cancelled,
        )
        jobs = [
            partial(run_trial, plan, setting, earlier.get(plan.key, ()))
            for plan in prepared.plans
            if not is_over(earlier.get(plan.key, ()))
        ]
        results = run_jobs(
            jobs,
            parallel=slots.count,
            may_begin=lambda: not ledger.spent(),
            cancelled=cancelled,
            on_cancel=provider.close,
        )
        # Threads that are stuck in a call, of a model say, end with the process; their trials are recorded now.
        results += [result for abandon in list(setting.ongoing) if (result := abandon())]
        provider.close()
    last = {key: attempts[-1] for key, attempts in earlier.items() if attempts}
    last |= {(result.task, result.agent, result.repeat): result for result in results}
    counting = tuple(last[plan.key] for plan in prepared.plans if plan.key in last)
    summary = RunSummary(paths.root, counting, len(prepared.plans), prepared.skipped, stop.signal_number)
    return replace(summary, budget_reached=ledger.spent()) if summary.not_begun else summary


def _ledger(config: RunConfig, earlier: Attempts) -> RunLedger:
    attempts = [attempt for of_trial in earlier.values() for attempt in of_trial]
    tokens = sum(attempt.tokens.total for attempt in attempts if attempt.tokens)
    return RunLedger(config.budget, tokens=tokens, cost_usd=sum(attempt.cost_usd or 0.0 for attempt in attempts))


def write_ingredients(paths: RunPaths, config: RunConfig, prepared: Preparation, lock: RunLock) -> None:
    """Write run.yaml, by which the run can be had again, and lock.json.

    Raises:
        InfraError: They could not be written.
    """
    places = {"source": prepared.source.resolve(), "out": config.out.resolve()}
    if config.cache is not None:
        places["cache"] = config.cache.resolve()
    resolved = config.model_copy(update=places)
    try:
        write_atomic(paths.config, yaml.safe_dump(resolved.model_dump(mode="json"), sort_keys=False))
        write_atomic(paths.lock, lock.model_dump_json(indent=2) + "\n")
    except OSError as error:
        raise InfraError(f"{paths.root}: could not be written: {error.strerror or error}") from error
