"""What one run is asked to do: from a YAML file, with the command line on top."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, ValidationError

from deskfork.agent.config import AgentConfig
from deskfork.agent.limits import Limits
from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError
from deskfork.setup.steps import SETUP_TIMEOUT_S
from deskfork.trial.agents import parse_agents
from deskfork.trial.budget import RunBudget
from deskfork.trial.capacity import MAX_PARALLEL


class RunConfig(StrictModel):
    """One run: agents, their tasks and how often."""

    agents: tuple[AgentConfig, ...] = Field(min_length=1)
    """Each plays every task; their names differ. See `resolve_config` for the short forms that a file may have."""
    cache: Path | None = None
    """Folder in which answers of models are kept, to be given again to the same questions."""
    source: Path | None = None
    """Folder of tasks or a Spider2-V checkout; None for the project's own tasks."""
    tasks: str = Field(default="all", min_length=1)
    """Task ids or unambiguous prefixes with commas between, or `all`."""
    wording: Literal["abstract", "verbose"] | None = None
    """Of the tasks that are one goal worded twice only the one worded so; None for all."""
    provider: Literal["auto", "docker", "qemu", "fake"] = "auto"
    repeats: int = Field(default=1, ge=1, le=1000)
    """Trials of each task by each agent."""
    parallel: Annotated[int, Field(ge=1, le=MAX_PARALLEL)] | Literal["auto"] = 1
    """Trials at the same time; `auto` is what this machine's cores and free memory allow. One by default: trials beside
    others are slower, so that a run's times would depend on which machine it happened to have."""
    engine: Literal["local", "ray"] = "local"
    """Where trials run: on this machine, or on the nodes of a Ray cluster."""
    ray_address: str = Field(default="auto", min_length=1)
    """Of the cluster: `auto` for the one that this machine is in, `ray://HOST:PORT`, `HOST:PORT`, or `local` for one of
    this machine alone."""
    limits: Limits = Limits()
    """What one attempt of an agent may use, unless the agent says so itself; the seconds do not count set-up and
    evaluation."""
    budget: RunBudget = RunBudget()
    """What the whole run may use."""
    setup_timeout_s: float = Field(default=SETUP_TIMEOUT_S, gt=0)
    """For all set-up steps of a task together, seconds."""
    network: bool = False
    """Whether guests may open connections to the outside."""
    keep_state: bool = False
    """Whether each attempt keeps the disk as the agent left it, for `run regrade --boot`."""
    evaluations: int = Field(default=1, ge=1, le=10)
    """How often each end state is read and judged; the first one counts."""
    out: Path = Path("runs")
    """Parent folder of run directories."""


def resolve_config(file: Path | None, given: Mapping[str, object]) -> RunConfig:
    """Lay what was `given` on the command line over a YAML file, and that over the defaults.

    `agents` is a list of short forms (the name of an action space, `oracle`, `null`, `replay:FILE`, the path of an
    agent's YAML file) and of what would stand in such a file. `model` is for all of them that have an action space.
    Paths in both are relative to the run's file, those of the command line to the working directory.

    Args:
        file: A YAML file with the keys of RunConfig, or None.
        given: Values by key; `limits.steps` is the key `steps` within `limits`. None means not given.

    Raises:
        ConfigError: The file cannot be read, or the result is no RunConfig; the message names the key.
    """
    values = _read_yaml(file) if file else {}
    folder = file.parent if file else Path()
    for key, value in given.items():
        if value is not None:
            _lay_over(values, key, value, file)
    specs, model = values.pop("agents", None), values.pop("model", None)
    if not specs:
        raise ConfigError(
            "no agent was named: add --agent oracle, null, replay:FILE, an action space (see `deskfork agent list`),"
            " or an agent's YAML file"
        )
    if not isinstance(specs, list | tuple) or not all(isinstance(spec, str | Mapping) for spec in specs):
        raise ConfigError(f'agents: must be a list of names, paths and mappings, got {specs!r} (is "null" quoted?)')
    if not isinstance(model, str | None):
        raise ConfigError(f"model: must be text, got {model!r}")
    agents = parse_agents(
        specs,
        model,
        folder=Path() if given.get("agents") else folder,
        model_folder=Path() if given.get("model") else folder,
    )
    try:
        return RunConfig.model_validate({**values, "agents": agents})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        origin = f"{file}: " if file else ""
        raise ConfigError(f"{origin}{key}: {first['msg']}, got {first['input']!r}") from error


def _lay_over(values: dict[str, object], key: str, value: object, file: Path | None) -> None:
    outer, _, inner = key.rpartition(".")
    if not outer:
        values[inner] = value
        return
    within = values.setdefault(outer, {})
    if not isinstance(within, dict):
        raise ConfigError(f"{file}: {outer} must hold keys and values, not {within!r}")
    within[inner] = value


def _read_yaml(file: Path) -> dict[str, object]:
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{file}: has no keys of a run; see configs for examples")
    return found
