"""Scripts chosen by task: a model `scripted:FOLDER` says another script for each task and action space.

`FOLDER/index.yaml` maps a task's id to a policy's name, `FOLDER/POLICY/ACTION_SPACE.yaml` is the script.
"""

from pathlib import Path

import yaml

from deskfork.agent.config import AgentConfig, ModelAgentConfig, ReplayConfig
from deskfork.core.errors import ConfigError

INDEX = "index.yaml"
_SCHEME = "scripted:"
_OF_FILES = ("scripted", "replay")


def with_script(agent: AgentConfig, task: str, indexes: dict[Path, dict[str, str]]) -> AgentConfig:
    """Return the agent as it is to be run on one task: one with a folder of scripts gets that task's script.

    Args:
        agent: Any agent; all others come back as they are.
        task: The task's id.
        indexes: What was read of folders so far; added to.

    Raises:
        ConfigError: The folder has no index, or no script for the task in the agent's action space.
    """
    if not isinstance(agent, ModelAgentConfig) or not agent.model.startswith(_SCHEME):
        return agent
    folder = Path(agent.model.removeprefix(_SCHEME))
    if not folder.is_dir():
        return agent
    if folder not in indexes:
        indexes[folder] = _read_index(folder / INDEX)
    policy = indexes[folder].get(task)
    if policy is None:
        raise ConfigError(f"agent '{agent.name}' has no script for task {task}: {folder / INDEX} does not name it")
    script = folder / policy / f"{agent.actions}.yaml"
    if not script.is_file():
        raise ConfigError(f"agent '{agent.name}' has no script for task {task}: there is no file {script}")
    return agent.model_copy(update={"model": f"{_SCHEME}{script}"})


def script_of(agent: AgentConfig) -> Path | None:
    """Return the host file that an agent reads its replies from, if it does."""
    if isinstance(agent, ReplayConfig):
        return agent.file
    scheme, _, name = agent.model.partition(":") if isinstance(agent, ModelAgentConfig) else ("", "", "")
    return Path(name) if scheme in _OF_FILES else None


def moved_script(agent: AgentConfig, place: Path) -> AgentConfig:
    """Return an agent that has a script, with the script at another place."""
    if isinstance(agent, ModelAgentConfig):
        return agent.model_copy(update={"model": f"{agent.model.partition(':')[0]}:{place}"})
    return agent.model_copy(update={"file": place})


def _read_index(path: Path) -> dict[str, str]:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror or error}): a folder of scripts needs one, with a policy's name"
            " for each task's id"
        ) from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict) or not all(isinstance(word, str) for pair in found.items() for word in pair):
        raise ConfigError(f"{path} must map ids of tasks to names of policies")
    return found
