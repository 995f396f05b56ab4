"""Which agent to run, and with what: YAML files and the command line's short forms."""

from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from deskfork.agent.observe.observe import ObserveConfig, ScreenshotConfig
from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_BUILT_IN = "code, oracle, null, replay:FILE, or the path of an agent's YAML file"


class ModelSettings(StrictModel):
    """How the model is asked; what is None is left to the model's own default."""

    timeout_s: float = Field(default=180.0, gt=0)
    """For one call, seconds."""
    attempts: int = Field(default=4, ge=1, le=10)
    """How often one call is made when the API is busy or unreachable."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    """Length of one answer; some reasoning models refuse to be given this or a temperature."""


class _GuestAgentConfig(StrictModel):
    observe: tuple[ObserveConfig, ...] = (ScreenshotConfig(),)
    """Step callbacks, in order."""
    cell_timeout_s: float = Field(default=300.0, gt=0)
    """For one cell; then it is interrupted and the agent told so."""
    output_chars: int = Field(default=20_000, ge=200)
    """How much of one cell's output goes into the conversation: its head and its tail."""


class CodeConfig(_GuestAgentConfig):
    """A smolagents CodeAgent with a language model."""

    kind: Literal["code"] = "code"
    name: str = Field(default="code", pattern=_NAME)
    model: str
    """`litellm:MODEL`, `openai:MODEL` or `openai:MODEL@BASE_URL`, `transformers:MODEL`."""
    settings: ModelSettings = ModelSettings()
    packages: tuple[str, ...] = (
        "pyautogui", "numpy", "pandas", "scipy", "scikit-learn", "matplotlib", "seaborn", "nbformat", "nbconvert",
        "nbclient", "jupyterlab", "openpyxl", "requests", "pillow", "pyyaml",
    )  # fmt: skip
    """Distributions whose installed versions the prompt tells; those that the guest does not have are left out."""


class OracleConfig(_GuestAgentConfig):
    """Runs the task's solution, one cell a step."""

    kind: Literal["oracle"] = "oracle"
    name: str = Field(default="oracle", pattern=_NAME)


class NullConfig(StrictModel):
    """Does nothing: the floor that any score has to be compared with."""

    kind: Literal["null"] = "null"
    name: str = Field(default="null", pattern=_NAME)


class ReplayConfig(_GuestAgentConfig):
    """Runs the cells of a JSON Lines file, one a step; a trajectory.jsonl is such a file."""

    kind: Literal["replay"] = "replay"
    name: str = Field(default="replay", pattern=_NAME)
    file: Path


AgentConfig = Annotated[CodeConfig | OracleConfig | NullConfig | ReplayConfig, Field(discriminator="kind")]
_adapter: TypeAdapter[CodeConfig | OracleConfig | NullConfig | ReplayConfig] = TypeAdapter(AgentConfig)


def parse_agent(spec: str, model: str | None = None) -> CodeConfig | OracleConfig | NullConfig | ReplayConfig:
    """Return the configuration that a command line names.

    Args:
        spec: `code`, `oracle`, `null`, `replay:FILE`, or the path of a YAML file.
        model: The model for a `code` agent, in place of the YAML file's if that names one.

    Raises:
        ConfigError: There is no such agent, its file is broken, or the model is missing or not wanted.
    """
    if spec.startswith("replay:") and spec != "replay:":
        given: dict[str, object] = {"kind": "replay", "file": spec.removeprefix("replay:")}
    elif spec in ("code", "oracle", "null"):
        given = {"kind": spec}
    else:
        given = _read_yaml(spec)
    if given.get("kind") == "code":
        if model is not None:
            given["model"] = model
        if "model" not in given:
            raise ConfigError(
                f"agent '{spec}' needs a model: add --model litellm:MODEL, openai:MODEL@BASE_URL or transformers:MODEL"
            )
    elif model is not None:
        raise ConfigError(f"agent '{spec}' uses no model: drop --model {model}")
    try:
        return _adapter.validate_python(given)
    except ValidationError as exc:
        raise ConfigError(f"agent '{spec}': {_explain(exc)}") from exc


def _read_yaml(spec: str) -> dict[str, object]:
    path = Path(spec)
    if path.suffix not in (".yaml", ".yml"):
        raise ConfigError(f"unknown agent '{spec}': give {_BUILT_IN}")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise ConfigError(f"agent file {path}: {exc.strerror or exc}; give {_BUILT_IN}") from exc
    except (UnicodeDecodeError, yaml.YAMLError) as exc:
        raise ConfigError(f"agent file {path} is not YAML: {' '.join(str(exc).split())}") from exc
    if not isinstance(content, dict):
        raise ConfigError(f"agent file {path} must hold settings (kind: code, ...), not {type(content).__name__}")
    if content.get("kind") == "replay" and isinstance(content.get("file"), str):
        content["file"] = path.parent / content["file"]
    return content


def _explain(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, e['loc'])) or 'kind'}: {e['msg']}" for e in error.errors(include_url=False))
