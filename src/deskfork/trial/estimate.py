"""What a run would do and take, told without starting a machine."""

import statistics
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path

from deskfork.agent.config import AgentConfig, ModelAgentConfig
from deskfork.agent.limits import Limits
from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError
from deskfork.records.reader import read_run
from deskfork.records.trial import TrialResult
from deskfork.trial.capacity import Slots, choose_slots, measure_capacity, sandbox_mib
from deskfork.trial.config import RunConfig
from deskfork.trial.plan import TrialPlan
from deskfork.trial.prepare import Preparation, prepare
from deskfork.trial.run import open_engine

AROUND_S = 15.0
"""Fork, set-up, evaluation and closing of one trial, where no earlier trial of the task tells."""
STEP_S = 12.0
"""One step of a model's agent, where no earlier trial tells: the middle of what steps of desktop agents take."""
SOLUTION_S = 10.0
"""An oracle's or a replay's work, where no earlier trial tells."""
_RUNS_READ = 20
"""Earlier runs that are looked at, the newest."""


class PlannedTrial(StrictModel):
    """One trial that would be run."""

    task: str
    agent: str
    repeat: int
    model: str | None
    seconds: float
    """About how long it takes."""


class PlannedAgent(StrictModel):
    """What one agent would take."""

    agent: str
    model: str | None
    trials: int
    seconds: float
    """Of its trials one after the other."""
    max_cost_usd: float | None
    """At the model's list price and the limits; None where one of them is not known."""


class RunEstimate(StrictModel):
    """What a run would do."""

    trials: tuple[PlannedTrial, ...]
    """In the order in which they would begin."""
    agents: tuple[PlannedAgent, ...]
    tasks: tuple[str, ...]
    skipped: dict[str, str]
    """Why a task would be left out, by its id."""
    parallel: int
    cores: int
    free_mib: int
    sandbox_mib: int
    """What one sandbox may come to use."""
    memory_mib: int
    """Of as many as run at the same time."""
    seconds: float
    """About how long the whole run takes."""
    earlier_trials: int
    """How many trials of earlier runs the times were taken from; the others are defaults."""
    max_cost_usd: float | None
    """Of the whole run, its budget included; None where that is not known."""
    warning: str = ""


def plan_run(config: RunConfig) -> RunEstimate:
    """Work out what `config` would do and take; no machine is started, nothing is written.

    Raises:
        ConfigError: The run could not be begun.
        InfraError: A local model could not be loaded, or free memory could not be measured.
    """
    prepared = prepare(config)
    slots = _slots(config)
    times = _Times(_earlier_results(config.out))
    trials = tuple(_trial(plan, config, times) for plan in prepared.plans)
    agents = tuple(_agent(agent, prepared, trials, config) for agent in prepared.agents)
    costs = [agent.max_cost_usd for agent in agents]
    known = [cost for cost in costs if cost is not None]
    bounds = [config.budget.cost_usd] if config.budget.cost_usd is not None else []
    bounds += [sum(known)] if len(known) == len(costs) else []
    seconds = sum(trial.seconds for trial in trials) / slots.count
    return RunEstimate(
        trials=trials,
        agents=agents,
        tasks=tuple(task.id for task in prepared.tasks),
        skipped=prepared.skipped,
        parallel=slots.count,
        cores=slots.capacity.cores,
        free_mib=slots.capacity.free_mib,
        sandbox_mib=slots.sandbox_mib,
        memory_mib=slots.count * slots.sandbox_mib,
        seconds=round(min(seconds, config.budget.seconds or seconds), 1),
        earlier_trials=times.count,
        max_cost_usd=min(bounds, default=None),
        warning=slots.warning,
    )


def _slots(config: RunConfig) -> Slots:
    if config.engine == "local":
        return choose_slots(config.parallel, sandbox_mib(config.provider), measure_capacity())
    with closing(open_engine(config, config.provider, None)) as cluster:
        return cluster.slots(config, ())


class _Times:
    """What earlier trials took: the agent's part by task and agent, everything around it by task."""

    def __init__(self, results: Iterable[TrialResult]) -> None:
        self._agent: dict[tuple[str, ...], list[float]] = defaultdict(list)
        self._around: dict[str, list[float]] = defaultdict(list)
        self.count = 0
        for result in results:
            worked_s = result.phases_s.get("agent")
            if worked_s is None or "evaluate" not in result.phases_s:
                continue
            self.count += 1
            self._around[result.task].append(result.duration_s - worked_s)
            for key in ((result.task, result.agent), (result.agent,)):
                self._agent[key].append(worked_s)

    def around_s(self, task: str) -> float:
        return statistics.median(self._around.get(task) or [AROUND_S])

    def agent_s(self, task: str, agent: str, default_s: float) -> float:
        return statistics.median(self._agent.get((task, agent)) or self._agent.get((agent,)) or [default_s])


def _earlier_results(out: Path) -> Iterable[TrialResult]:
    folders = sorted(out.iterdir(), reverse=True) if out.is_dir() else []
    for folder in folders[:_RUNS_READ]:
        with suppress(ConfigError):  # no run directory, or a damaged one: it tells nothing
            yield from (attempt.result for attempt in read_run(folder).attempts if attempt.result is not None)


def _limits(agent: AgentConfig, config: RunConfig) -> Limits:
    return (agent.limits if isinstance(agent, ModelAgentConfig) else None) or config.limits


def _trial(plan: TrialPlan, config: RunConfig, times: _Times) -> PlannedTrial:
    limits = _limits(plan.agent, config)
    default_s = SOLUTION_S
    if plan.agent.kind == "null":
        default_s = 0.0
    elif plan.agent.kind == "model":
        default_s = min(limits.seconds, limits.steps * STEP_S)
    seconds = times.around_s(plan.task.id) + times.agent_s(plan.task.id, plan.agent.name, default_s)
    return PlannedTrial(
        task=plan.task.id, agent=plan.agent.name, repeat=plan.repeat, model=plan.model, seconds=round(seconds, 1)
    )


def _agent(
    agent: AgentConfig, prepared: Preparation, trials: tuple[PlannedTrial, ...], config: RunConfig
) -> PlannedAgent:
    own = [trial for trial in trials if trial.agent == agent.name]
    limits = _limits(agent, config)
    costs = [_max_cost_usd(plan, limits) for plan in prepared.plans if plan.agent.name == agent.name]
    known = [cost for cost in costs if cost is not None]
    return PlannedAgent(
        agent=agent.name,
        model=agent.model if isinstance(agent, ModelAgentConfig) else None,
        trials=len(own),
        seconds=round(sum(trial.seconds for trial in own), 1),
        max_cost_usd=round(sum(known), 4) if len(known) == len(costs) else None,
    )


def _max_cost_usd(plan: TrialPlan, limits: Limits) -> float | None:
    """Return what one trial may cost at most, up to the last answer before a limit is noticed."""
    price = plan.price
    if price is None:
        return None
    dearest_usd = max(price.input_usd, price.output_usd)
    bounds = [limits.cost_usd] if limits.cost_usd is not None else []
    bounds += [limits.tokens * dearest_usd] if limits.tokens is not None else []
    return 0.0 if dearest_usd == 0.0 else min(bounds, default=None)
