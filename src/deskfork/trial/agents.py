"""The agents of one run: from the words of a command line or a run's file to whole configurations."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deskfork.agent.config import AgentConfig, ModelAgentConfig, located_model, parse_agent
from deskfork.core.errors import ConfigError

AgentSpec = str | Mapping[str, Any]
"""A short form (`oracle`, an action space, `replay:FILE`, a YAML file's path), or what would stand in such a file."""


def parse_agents(
    specs: Sequence[AgentSpec], model: str | None, *, folder: Path, model_folder: Path
) -> tuple[AgentConfig, ...]:
    """Return the agents' configurations, complete and with absolute paths.

    Args:
        specs: At least one.
        model: For those that have an action space, in place of their own; agents without a model go unchanged.
        folder: What paths in `specs` are relative to.
        model_folder: What a path in `model` is relative to.

    Raises:
        ConfigError: One is unknown or broken, two have the same name, or none uses a model although one is given.
    """
    if model is not None:
        model = located_model(model, model_folder.absolute())
    agents: list[AgentConfig] = []
    is_model_used = False
    for spec in specs:
        # Only a complete configuration tells whether the agent has a model at all.
        agent = parse_agent(spec, without_model=model or None, folder=folder.absolute())
        if isinstance(agent, ModelAgentConfig) and model is not None:
            agent = agent.model_copy(update={"model": model})
            is_model_used = True
        agents.append(agent)
    if model is not None and not is_model_used:
        raise ConfigError(f"agent '{agents[0].name}': it uses no model: drop --model {model}")
    names = [agent.name for agent in agents]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(
            f"two agents are called '{twice}': give one of them another `name` in its YAML file or mapping"
        )
    return tuple(agents)
