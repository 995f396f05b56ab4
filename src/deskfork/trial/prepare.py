"""Everything that can be found wrong with a run before its first machine is started."""

from dataclasses import dataclass, replace
from pathlib import Path

from deskfork.agent.build import check_agent
from deskfork.agent.config import AgentConfig, ModelAgentConfig, OracleConfig
from deskfork.agent.models.built import Price
from deskfork.core.errors import ConfigError, TaskError
from deskfork.sandbox.base import SandboxProvider, TemplateFacts
from deskfork.tasks.load import ALL, open_source, select
from deskfork.tasks.schema import Task
from deskfork.tasks.setup_key import setup_key
from deskfork.tasks.solution import read_cells
from deskfork.tasks.source import TaskSource
from deskfork.trial.config import RunConfig
from deskfork.trial.plan import TrialPlan
from deskfork.trial.policies import with_script


@dataclass(frozen=True)
class Preparation:
    """What a run is going to do."""

    agents: tuple[AgentConfig, ...]
    source: Path
    tasks: tuple[Task, ...]
    plans: tuple[TrialPlan, ...]
    """In the order in which they begin: a run that is cut off has given each agent the same tasks as often."""
    skipped: dict[str, str]
    """Why a task is left out, by its id; only where `all` were asked for."""


def prepare(config: RunConfig) -> Preparation:
    """Read the tasks and check the agents.

    Raises:
        ConfigError: The source, an agent or its model is unknown or unfit (TaskError: a task is), or what a model costs
            is bounded and not known.
        InfraError: A local model could not be loaded.
    """
    source = open_source(config.source)
    tasks, skipped = _load(config, source)
    cells = {task.id: _cells(task, source) for task in tasks if _has_oracle(config)}
    indexes: dict[Path, dict[str, str]] = {}
    prices: dict[str, Price | None] = {}
    once: list[TrialPlan] = []
    for task in tasks:
        key = setup_key(task)
        for named in config.agents:
            agent = with_script(named, task.id, indexes)
            if (known := agent.model_dump_json()) not in prices:
                prices[known] = _price(agent, config)
            solution = cells[task.id] if isinstance(agent, OracleConfig) else None
            once.append(TrialPlan(task, agent, 0, solution, key, prices[known]))
    plans = (replace(plan, repeat=repeat) for repeat in range(config.repeats) for plan in once)
    return Preparation(config.agents, source.path, tuple(tasks), tuple(plans), skipped)


def _load(config: RunConfig, source: TaskSource) -> tuple[list[Task], dict[str, str]]:
    tasks: list[Task] = []
    skipped: dict[str, str] = {}
    is_all = config.tasks.strip() == ALL
    for task_id in select(source, config.tasks, config.wording):
        try:
            task = source.load(task_id)
            if _has_oracle(config):
                _cells(task, source)
            tasks.append(task)
        except TaskError as error:
            if not is_all:
                raise
            skipped[task_id] = str(error)
    if not tasks:
        first = next(iter(skipped.values()), "it has none")
        names = ", ".join(f"'{agent.name}'" for agent in config.agents)
        raise TaskError(f"no task of {source.path} can be run by agent {names}: {first}")
    return tasks, skipped


def _has_oracle(config: RunConfig) -> bool:
    return any(isinstance(agent, OracleConfig) for agent in config.agents)


def _price(agent: AgentConfig, config: RunConfig) -> Price | None:
    price = check_agent(agent)
    limits = (agent.limits if isinstance(agent, ModelAgentConfig) else None) or config.limits
    if price is None and (limits.cost_usd is not None or config.budget.cost_usd is not None):
        model = agent.model if isinstance(agent, ModelAgentConfig) else ""
        raise ConfigError(
            f"agent '{agent.name}': the price of model '{model}' is not known, so no limit or budget of cost can be"
            " kept: bound its tokens instead"
        )
    return price


def describe_templates(provider: SandboxProvider, tasks: tuple[Task, ...]) -> tuple[TemplateFacts, ...]:
    """Return what the tasks' templates are.

    Raises:
        ConfigError: One is not there; says how to build it.
    """
    return tuple(provider.describe(name) for name in sorted({task.template for task in tasks}))


def _cells(task: Task, source: TaskSource) -> list[str]:
    if task.solution is None:
        raise TaskError(f"task {task.id} of {source.path} has no solution for the oracle agent to run")
    return read_cells(task.solution)
