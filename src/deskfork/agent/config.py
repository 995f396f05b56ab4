"""Which agent to run, and with what: YAML files and the command line's short forms."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from deskfork.agent.actions.space import ActionSpace, action_space, action_spaces
from deskfork.agent.limits import Limits
from deskfork.agent.models.context import ContextPolicy
from deskfork.agent.models.settings import ModelSettings
from deskfork.agent.observe.base import StepCallback, step_callbacks
from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$"
_KINDS = ("oracle", "null", "replay")
_OF_FILES = ("scripted", "replay")
"""Models that are named by a path."""


class Named(StrictModel):
    """A step callback by name, with its options."""

    name: str
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _may_be_a_word(cls, given: Any) -> Any:
        """Take `screenshot` for `{name: screenshot}`, and `{name: a11y_tree, tokens: 3000}` with its options beside."""
        if isinstance(given, str):
            return {"name": given}
        if isinstance(given, Mapping) and "options" not in given:
            return {"name": given.get("name"), "options": {k: v for k, v in given.items() if k != "name"}}
        return given


class _GuestAgentConfig(StrictModel):
    cell_timeout_s: float = Field(default=300.0, gt=0)
    """For one cell, block or command; then it is interrupted and the agent told so."""
    output_chars: int = Field(default=20_000, ge=200)
    """How much of one cell's output goes into the conversation: its head and its tail."""


class ModelAgentConfig(_GuestAgentConfig):
    """A language model that acts in one of the action spaces."""

    kind: Literal["model"] = "model"
    name: str = Field(pattern=_NAME)
    actions: str
    """The action space."""
    observe: tuple[Named, ...] = ()
    """What the agent sees, in order; the action space's own choice when the file does not say."""
    callbacks: tuple[Named, ...] = ()
    """Further step callbacks, which run after those."""
    model: str
    """`litellm:MODEL`, `openai:MODEL[@BASE_URL]`, `transformers:MODEL`, `scripted:FILE` or `replay:FILE`."""
    settings: ModelSettings = ModelSettings()
    context: ContextPolicy = ContextPolicy()
    picture_px: int | None = Field(default=None, ge=320)
    """Longest side of the pictures that the model is shown, whose coordinates it gives. None: the screen's own."""
    limits: Limits | None = None
    """In place of the run's."""
    packages: tuple[str, ...] = (
        "pyautogui", "numpy", "pandas", "scipy", "scikit-learn", "matplotlib", "seaborn", "nbformat", "nbconvert",
        "nbclient", "jupyterlab", "openpyxl", "requests", "pillow", "pyyaml",
    )  # fmt: skip
    """Distributions whose installed versions the prompt tells; those that the guest does not have are left out."""

    def space(self) -> ActionSpace:
        """Return the action space.

        Raises:
            ConfigError: There is none of that name.
        """
        return action_space(self.actions)

    def step_callbacks(self) -> list[tuple[StepCallback, StrictModel]]:
        """Return what the agent observes and what else is called after each step, with their options.

        Raises:
            ConfigError: One is unknown, or its options are wrong.
        """
        return [_resolved(named) for named in (*self.observe, *self.callbacks)]


class OracleConfig(_GuestAgentConfig):
    """Runs the task's solution, one cell a step."""

    kind: Literal["oracle"] = "oracle"
    name: str = Field(default="oracle", pattern=_NAME)
    cell_timeout_s: float = Field(default=1800.0, gt=0)
    """Solutions have deadlines of their own, and run notebooks in one cell."""


class NullConfig(StrictModel):
    """Does nothing: the floor that any score has to be compared with."""

    kind: Literal["null"] = "null"
    name: str = Field(default="null", pattern=_NAME)


class ReplayConfig(_GuestAgentConfig):
    """Runs the cells of a JSON Lines file, one a step; a trajectory.jsonl of a code space is such a file."""

    kind: Literal["replay"] = "replay"
    name: str = Field(default="replay", pattern=_NAME)
    file: Path


AgentConfig = Annotated[ModelAgentConfig | OracleConfig | NullConfig | ReplayConfig, Field(discriminator="kind")]
_adapter: TypeAdapter[ModelAgentConfig | OracleConfig | NullConfig | ReplayConfig] = TypeAdapter(AgentConfig)


def built_in_agents() -> list[str]:
    """Return the short forms of the command line that need no file: each action space is one."""
    return [*action_spaces().names(), "oracle", "null"]


def parse_agent(
    spec: str | Mapping[str, Any], model: str | None = None, *, without_model: str | None = None, folder: Path = Path()
) -> ModelAgentConfig | OracleConfig | NullConfig | ReplayConfig:
    """Return the configuration that a command line or a run's file names.

    Args:
        spec: The name of an action space, `oracle`, `null`, `replay:FILE`, the path of a YAML file, or what would stand
            in such a file.
        model: The model for an action space, in place of the YAML file's if that names one.
        without_model: What stands for the model where none is named, by those who will not ask it.
        folder: What paths in `spec` are relative to; those in a YAML file are relative to that.

    Raises:
        ConfigError: There is no such agent, its file is broken, its parts do not fit together, or the model is missing
            or not wanted.
    """
    given = _given(spec, folder) if isinstance(spec, str) else _placed(dict(spec), folder)
    label = spec if isinstance(spec, str) else given.get("name") or given.get("actions") or given.get("kind")
    try:
        if given.get("kind", "model") == "model":
            given = _completed(given, model, without_model)
        elif model is not None:
            raise ConfigError(f"it uses no model: drop --model {model}")
        config = _adapter.validate_python(given)
        if isinstance(config, ModelAgentConfig):
            _check_parts(config)
    except ValidationError as exc:
        raise ConfigError(f"agent '{label}': {_explain(exc)}") from exc
    except ConfigError as exc:
        raise ConfigError(f"agent '{label}': {exc}") from exc
    return config


def located_model(spec: str, folder: Path) -> str:
    """Return a model's spec with the path in it, if it is one of a file or folder, relative to `folder`."""
    scheme, colon, name = spec.partition(":")
    if scheme not in _OF_FILES or not name.strip():
        return spec
    return f"{scheme}{colon}{os.path.normpath(folder / Path(name).expanduser())}"


def _placed(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Put paths in their place."""
    if given.get("kind") == "replay" and isinstance(given.get("file"), str):
        given["file"] = folder / given["file"]
    if isinstance(given.get("model"), str):
        given["model"] = located_model(given["model"], folder)
    return given


def _given(spec: str, folder: Path) -> dict[str, Any]:
    if spec.startswith("replay:") and spec != "replay:":
        return {"kind": "replay", "file": folder / spec.removeprefix("replay:")}
    if spec in ("oracle", "null"):
        return {"kind": spec}
    if spec in action_spaces().names():
        return {"actions": spec}
    return _read_yaml(spec, folder)


def _completed(given: dict[str, Any], model: str | None, without_model: str | None) -> dict[str, Any]:
    """Put in what follows from the action space, and the model."""
    name = given.get("actions")
    if not isinstance(name, str):
        known = ", ".join(action_spaces().names())
        raise ConfigError(f"actions: name the action space, one of {known}")
    observe = list(action_space(name).observe)
    model = model or given.get("model") or without_model
    if model is None:
        raise ConfigError("it needs a model: add --model litellm:MODEL, openai:MODEL@BASE_URL or transformers:MODEL")
    return {"kind": "model", "name": name, "observe": observe, **given, "model": model}


def _check_parts(config: ModelAgentConfig) -> None:
    space, found = config.space(), [callback for callback, _ in config.step_callbacks()]
    names = [callback.name for callback in found]
    for callback in found:
        if why := space.impossible.get(callback.name):
            raise ConfigError(f"'{callback.name}' does not go with actions '{space.name}': {why}")
        if clash := [other for other in callback.excludes if other in names]:
            raise ConfigError(f"'{callback.name}' does not go with '{clash[0]}': drop one of them")
        if names.count(callback.name) > 1:
            raise ConfigError(f"'{callback.name}' is named twice")


def _resolved(named: Named) -> tuple[StepCallback, StrictModel]:
    callback = step_callbacks().get(named.name)
    try:
        return callback, callback.options.model_validate(named.options)
    except ValidationError as exc:
        raise ConfigError(f"step callback '{named.name}': {_explain(exc)}") from exc


def _read_yaml(spec: str, folder: Path) -> dict[str, Any]:
    path = folder / spec
    forms = f"give {', '.join(built_in_agents())}, replay:FILE, or the path of an agent's YAML file"
    if path.suffix not in (".yaml", ".yml"):
        raise ConfigError(f"unknown agent '{spec}': {forms}")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise ConfigError(f"agent file {path}: {exc.strerror or exc}; {forms}") from exc
    except (UnicodeDecodeError, yaml.YAMLError) as exc:
        raise ConfigError(f"agent file {path} is not YAML: {' '.join(str(exc).split())}") from exc
    if not isinstance(content, dict):
        raise ConfigError(f"agent file {path} must hold settings (actions: ...), not {type(content).__name__}")
    return _placed(content, path.parent)


def _explain(error: ValidationError) -> str:
    told = []
    for found in error.errors(include_url=False):
        place = [str(part) for part in found["loc"]]
        # A union's alternative stands first in the place; the reader's file has no such key.
        if place and place[0] in ("model", *_KINDS):
            del place[0]
        told.append(f"{'.'.join(place) or 'kind'}: {found['msg']}")
    return "; ".join(told)
