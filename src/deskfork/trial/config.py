"""What one run is asked to do: from a YAML file, with the command line on top."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field, ValidationError

from deskfork.agent.limits import Limits
from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError
from deskfork.setup.steps import SETUP_TIMEOUT_S


class RunConfig(StrictModel):
    """One run: an agent, its tasks and how often."""

    agent: str
    """The name of an action space, `oracle`, `null`, `replay:FILE`, or the path of an agent's YAML file."""
    model: str | None = None
    """`litellm:…`, `openai:…`, `transformers:…`, `scripted:FILE` or `replay:FILE`; for agents of an action space."""
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
    """Trials of each task."""
    parallel: int = Field(default=1, ge=1, le=64)
    """Trials at the same time."""
    limits: Limits = Limits()
    """What one attempt of the agent may use; its seconds do not count set-up and evaluation."""
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

    Args:
        file: A YAML file with the keys of RunConfig, or None.
        given: Values by key; `limits.steps` is the key `steps` within `limits`. None means not given.

    Raises:
        ConfigError: The file cannot be read, or the result is no RunConfig; the message names the key.
    """
    values = _read_yaml(file) if file else {}
    for key, value in given.items():
        if value is not None:
            _lay_over(values, key, value, file)
    if not values.get("agent"):
        raise ConfigError(
            "no agent was named: add --agent oracle, null, replay:FILE, an action space (see `deskfork agent list`),"
            " or an agent's YAML file"
        )
    try:
        return RunConfig.model_validate(values)
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
        raise ConfigError(f"{file}: has no keys of a run; see configs/runs for examples")
    return found
