"""One run: many trials, one directory."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event

import yaml

from deskfork.core.atomic import write_atomic
from deskfork.core.config import cache_dir
from deskfork.core.errors import InfraError
from deskfork.core.tracing import current_context, span
from deskfork.records.paths import RunPaths, create_run
from deskfork.records.trial import TrialResult
from deskfork.sandbox.base import SandboxProvider, TemplateFacts
from deskfork.sandbox.open import open_provider
from deskfork.trial.config import RunConfig
from deskfork.trial.engines.local import run_jobs
from deskfork.trial.interrupt import ends_on_signals
from deskfork.trial.lock import make_lock
from deskfork.trial.plan import Notify, TrialSetting
from deskfork.trial.prepare import Preparation, describe_templates, prepare
from deskfork.trial.trial import run_trial

OnBegin = Callable[[Path, Preparation], None]


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
        paths = create_run(config.out)
        _write_ingredients(paths, config, opened, templates, prepared)
        on_begin(paths.root, prepared)
        attributes = {"deskfork.run": paths.id, "deskfork.agent": config.agent, "deskfork.provider": opened.name}
        cancelled = Event()
        stop = stack.enter_context(ends_on_signals(cancelled))
        with span("run", attributes):
            setting = TrialSetting(
                provider=opened,
                paths=paths,
                limits=config.limits,
                setup_timeout_s=config.setup_timeout_s,
                network=config.network,
                notify=notify,
                keep_state=config.keep_state,
                evaluations=config.evaluations,
                cache=config.cache,
                parent=current_context(),
                cancelled=cancelled,
            )
            jobs = [partial(run_trial, plan, setting) for plan in prepared.plans]
            results = run_jobs(jobs, parallel=config.parallel, cancelled=cancelled, on_cancel=opened.close)
            # Threads that are stuck in a call, of a model say, end with the process; their trials are recorded now.
            results += [result for abandon in list(setting.ongoing) if (result := abandon())]
        opened.close()
    order = {(plan.task.id, plan.repeat): place for place, plan in enumerate(prepared.plans)}
    results.sort(key=lambda result: order[result.task, result.repeat])
    return RunSummary(paths.root, tuple(results), len(prepared.plans), prepared.skipped, stop.signal_number)


def _write_ingredients(
    paths: RunPaths,
    config: RunConfig,
    provider: SandboxProvider,
    templates: tuple[TemplateFacts, ...],
    prepared: Preparation,
) -> None:
    resolved = config.model_copy(update={"source": prepared.source.resolve(), "out": config.out.resolve()})
    lock = make_lock(paths.id, provider.name, templates, prepared)
    try:
        write_atomic(paths.config, yaml.safe_dump(resolved.model_dump(mode="json"), sort_keys=False))
        write_atomic(paths.lock, lock.model_dump_json(indent=2) + "\n")
    except OSError as error:
        raise InfraError(f"{paths.root}: could not be written: {error.strerror or error}") from error
