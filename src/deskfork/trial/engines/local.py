"""Runs trials on this machine: one after the other, or several at the same time in threads."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import TypeVar

from deskfork.core.tracing import current_context
from deskfork.records.trial import TrialResult
from deskfork.sandbox.base import SandboxProvider, TemplateFacts
from deskfork.tasks.schema import Task
from deskfork.trial.budget import RunBudget, RunLedger
from deskfork.trial.capacity import Slots, choose_slots, measure_capacity, sandbox_mib
from deskfork.trial.config import RunConfig
from deskfork.trial.engines.engine import Work
from deskfork.trial.engines.threads import run_in_threads
from deskfork.trial.plan import TrialSetting
from deskfork.trial.prepare import describe_templates
from deskfork.trial.trial import run_trial

T = TypeVar("T")

_END_TIMEOUT_S = 8.0
"""For threads to end after a cancellation. Closing a sandbox does not wake every call that waits for it."""


class LocalEngine:
    """Carries out trials with one provider in this process; see `Engine`."""

    def __init__(self, provider: SandboxProvider) -> None:
        self._provider = provider

    @property
    def provider(self) -> str:
        """The provider's name."""
        return self._provider.name

    def templates(self, tasks: tuple[Task, ...]) -> tuple[TemplateFacts, ...]:
        """Return the provider's templates; see `Engine.templates`."""
        return describe_templates(self._provider, tasks)

    def slots(self, config: RunConfig, templates: Sequence[TemplateFacts]) -> Slots:
        """Go by this machine's cores and free memory; see `Engine.slots`."""
        accelerations = {template.acceleration for template in templates}
        need_mib = sandbox_mib(self.provider, "kvm" if accelerations == {"kvm"} else "tcg")
        return choose_slots(config.parallel, need_mib, measure_capacity())

    def ledger(self, budget: RunBudget, *, tokens: int, cost_usd: float) -> RunLedger:
        """Count in this process; see `Engine.ledger`."""
        return RunLedger(budget, tokens=tokens, cost_usd=cost_usd)

    def run(self, work: Work) -> list[TrialResult]:
        """Run trials in this process; see `Engine.run`."""
        config = work.config
        setting = TrialSetting(
            provider=self._provider,
            paths=work.paths,
            limits=config.limits,
            setup_timeout_s=config.setup_timeout_s,
            network=config.network,
            notify=work.notify,
            ledger=work.ledger,
            keep_state=config.keep_state,
            evaluations=config.evaluations,
            cache=config.cache,
            parent=current_context(),
            cancelled=work.cancelled,
        )
        results = run_jobs(
            [partial(run_trial, plan, setting, earlier) for plan, earlier in work.trials],
            parallel=work.slots.count,
            may_begin=lambda: not work.ledger.spent(),
            cancelled=work.cancelled,
            on_cancel=self._provider.close,
        )
        # Threads that are stuck in a call, of a model say, end with the process; their trials are recorded now.
        return results + [result for abandon in list(setting.ongoing) if (result := abandon())]

    def close(self) -> None:
        """Close the provider."""
        self._provider.close()


def run_jobs(
    jobs: Sequence[Callable[[], T]],
    *,
    parallel: int,
    may_begin: Callable[[], bool],
    cancelled: threading.Event,
    on_cancel: Callable[[], None],
) -> list[T]:
    """Run `jobs` and return what they returned, in the order of `jobs`.

    One at a time they run in the calling thread, so that Ctrl-C reaches whatever they wait for.

    Args:
        jobs: Must not raise anything but KeyboardInterrupt.
        parallel: How many may run at the same time.
        may_begin: Asked before each job; once it says no, none is started any more.
        cancelled: Set on KeyboardInterrupt, and then no further job is started; those without a result are left out.
        on_cancel: Called on KeyboardInterrupt while threads are at work; makes most of them end soon. A thread that
            does not is left alone, and its job has no result.
    """
    done: dict[int, T] = {}
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in range(len(jobs)):
        waiting.put(number)

    def work() -> None:
        while not cancelled.is_set() and may_begin():
            try:
                number = waiting.get_nowait()
            except Empty:
                return
            done[number] = jobs[number]()

    try:
        if parallel == 1:
            work()
        else:
            works = [work] * min(parallel, len(jobs))
            run_in_threads(works, name="trial", on_cancel=on_cancel, end_timeout_s=_END_TIMEOUT_S)
    except KeyboardInterrupt:
        cancelled.set()
    return [done[number] for number in sorted(done.copy())]
