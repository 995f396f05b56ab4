"""The form of Spider2-V's task JSON, and the words for what of it cannot be run.

Source: xlang-ai/Spider2-V, desktop_env/envs/desktop_env.py (`_set_task_info`).
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from deskfork.core.config import StrictModel
from deskfork.core.errors import TaskError

Parameters = Mapping[str, Any]


class Unsupported(TaskError):
    """The task needs what this version cannot do; the message goes on after the task's id."""


class ForeignStep(StrictModel):
    """One entry of `config` or `postconfig`."""

    type: str
    parameters: dict[str, Any] = Field(default_factory=dict)


class ForeignEvaluator(StrictModel):
    """The `evaluator` of a task; all but the first two are single values or lists of one length."""

    postconfig: tuple[ForeignStep, ...] = ()
    func: str | list[str]
    result: dict[str, Any] | list[dict[str, Any]] = Field(default_factory=dict)
    expected: dict[str, Any] | list[dict[str, Any] | None] | None = None
    options: dict[str, Any] | list[dict[str, Any] | None] | None = None
    conj: Literal["and", "or"] = "and"

    @property
    def metrics(self) -> list[str]:
        """The names of its metrics, also of a single one."""
        return [self.func] if isinstance(self.func, str) else self.func


class ForeignTask(BaseModel):
    """One task's JSON; keys that do not change its meaning (source, action_number, …) are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    instruction: str = Field(min_length=1)
    snapshot: str = ""
    """The application that the task is about, as upstream names its machines."""
    related_apps: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    config: tuple[ForeignStep, ...] = ()
    evaluator: ForeignEvaluator
    counterpart: str | None = None


def only(parameters: Parameters, *allowed: str) -> None:
    """Refuse parameters beyond `allowed`.

    Raises:
        Unsupported: There is one.
    """
    if further := sorted(set(parameters) - set(allowed)):
        raise Unsupported(f"with {', '.join(further)}, which this version does not know")


def on_host(path: object) -> object:
    """Return a path on the host; upstream takes addresses in the same place.

    Raises:
        Unsupported: It is the address of a download.
    """
    if isinstance(path, str) and path.startswith("http"):
        raise Unsupported(f"that downloads {path}, which this version does not do")
    return path
