"""One run: many trials, one directory."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

import yaml

from deskfork.core.atomic import write_atomic
from deskfork.core.config import cache_dir
from deskfork.core.errors import ConfigError, InfraError
from deskfork.core.tracing import span
from deskfork.records.claim import claimed
from deskfork.records.lock import RunLock
from deskfork.records.paths import RunPaths, create_run
from deskfork.records.trial import TrialResult, TrialStatus
from deskfork.sandbox.base import SandboxProvider
from deskfork.sandbox.open import open_provider
from deskfork.trial.budget import RunLedger
from deskfork.trial.capacity import Slots
from deskfork.trial.config import RunConfig
from deskfork.trial.engines.engine import Engine, Work
from deskfork.trial.engines.local import LocalEngine
from deskfork.trial.interrupt import ends_on_signals
from deskfork.trial.lock import make_lock
from deskfork.trial.plan import Notify
from deskfork.trial.prepare import Preparation, prepare
from deskfork.trial.trial import is_over

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
        engine = open_engine(config, config.provider, provider)
        stack.callback(engine.close)
        templates = engine.templates(prepared.tasks)
        slots = engine.slots(config, templates)
        paths = create_run(config.out)
        stack.enter_context(claimed(paths))
        write_ingredients(paths, config, prepared, make_lock(paths.id, engine.provider, templates, prepared))
        on_begin(Beginning(paths.root, prepared, slots))
        return carry_out(config, prepared, paths, engine, slots, notify=notify, earlier={})


def open_engine(config: RunConfig, name: str, provider: SandboxProvider | None) -> Engine:
    """Return what carries out a run's trials.

    Args:
        config: Says which.
        name: The provider to open.
        provider: In place of that one.

    Raises:
        ConfigError: The provider cannot work here, or there is no such cluster.
    """
    if config.engine == "local":
        return LocalEngine(provider or open_provider(name, cache_dir()))
    if importlib.util.find_spec("ray") is None:
        raise ConfigError("--engine ray needs the Python package ray: install deskfork[ray]")
    from deskfork.trial.engines.ray import RayEngine

    return RayEngine(config.ray_address, name)


def carry_out(
    config: RunConfig,
    prepared: Preparation,
    paths: RunPaths,
    engine: Engine,
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
        engine: Runs the trials; closed at the end.
        slots: How many trials at the same time.
        notify: See `start_run`.
        earlier: What the run has of each trial already.
    """
    cancelled = Event()
    attributes = {
        "deskfork.run": paths.id,
        "deskfork.agent": ", ".join(agent.name for agent in config.agents),
        "deskfork.provider": engine.provider,
    }
    due = [(plan, earlier.get(plan.key, ())) for plan in prepared.plans]
    with ends_on_signals(cancelled) as stop, span("run", attributes):
        ledger = _ledger(config, engine, earlier)
        open_trials = [(plan, attempts) for plan, attempts in due if not is_over(attempts)]
        results = engine.run(Work(config, paths, open_trials, slots, ledger, notify, cancelled))
        spent = ledger.spent()
        engine.close()
    last = {key: attempts[-1] for key, attempts in earlier.items() if attempts}
    last |= {(result.task, result.agent, result.repeat): result for result in results}
    counting = tuple(last[plan.key] for plan in prepared.plans if plan.key in last)
    summary = RunSummary(paths.root, counting, len(prepared.plans), prepared.skipped, stop.signal_number)
    return replace(summary, budget_reached=spent) if summary.not_begun else summary


def _ledger(config: RunConfig, engine: Engine, earlier: Attempts) -> RunLedger:
    attempts = [attempt for of_trial in earlier.values() for attempt in of_trial]
    tokens = sum(attempt.tokens.total for attempt in attempts if attempt.tokens)
    return engine.ledger(config.budget, tokens=tokens, cost_usd=sum(attempt.cost_usd or 0.0 for attempt in attempts))


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
