"""Everything that can be found wrong with a run before its first machine is started."""

from dataclasses import dataclass
from pathlib import Path

from deskfork.agent.build import check_agent
from deskfork.agent.config import AgentConfig, OracleConfig, parse_agent
from deskfork.core.errors import TaskError
from deskfork.sandbox.base import SandboxProvider, TemplateFacts
from deskfork.tasks.load import ALL, open_source, select
from deskfork.tasks.schema import Task
from deskfork.tasks.setup_key import setup_key
from deskfork.tasks.solution import read_cells
from deskfork.tasks.source import TaskSource
from deskfork.trial.config import RunConfig
from deskfork.trial.plan import TrialPlan


@dataclass(frozen=True)
class Preparation:
    """What a run is going to do."""

    agent: AgentConfig
    source: Path
    tasks: tuple[Task, ...]
    plans: tuple[TrialPlan, ...]
    skipped: dict[str, str]
    """Why a task is left out, by its id; only where `all` were asked for."""


def prepare(config: RunConfig) -> Preparation:
    """Read the tasks and check the agent.

    Raises:
        ConfigError: The source, the agent or its model is unknown or unfit (TaskError: a task is).
        InfraError: A local model could not be loaded.
    """
    agent = parse_agent(config.agent, config.model)
    source = open_source(config.source)
    tasks: list[Task] = []
    cells: dict[str, list[str] | None] = {}
    skipped: dict[str, str] = {}
    is_all = config.tasks.strip() == ALL
    for task_id in select(source, config.tasks, config.wording):
        try:
            task = source.load(task_id)
            cells[task.id] = _cells(task, source) if isinstance(agent, OracleConfig) else None
            tasks.append(task)
        except TaskError as error:
            if not is_all:
                raise
            skipped[task_id] = str(error)
    if not tasks:
        first = next(iter(skipped.values()), "it has none")
        raise TaskError(f"no task of {source.path} can be run by agent '{config.agent}': {first}")
    check_agent(agent)
    keys = {task.id: setup_key(task) for task in tasks}
    plans = [TrialPlan(task, agent, n, cells[task.id], keys[task.id]) for task in tasks for n in range(config.repeats)]
    return Preparation(agent, source.path, tuple(tasks), tuple(plans), skipped)


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
