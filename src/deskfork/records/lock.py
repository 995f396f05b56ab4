"""What a run's lock.json says: exactly what the run was made with."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field, JsonValue, model_validator

from deskfork.core.config import StrictModel


class TemplateLock(StrictModel):
    """One template that the run's trials were forked from."""

    name: str
    digest: str
    image_digest: str
    qemu_version: str
    acceleration: str


class TaskWording(StrictModel):
    """How a task's instruction is worded, and which task words the same goal otherwise."""

    wording: Literal["abstract", "verbose"]
    counterpart: str


class RunLock(StrictModel):
    """The exact ingredients of a run."""

    run_id: str
    created_at: datetime
    provider: str
    templates: tuple[TemplateLock, ...]
    tasks: dict[str, str]
    """Hash of each task's content (instruction, steps, evaluator, fixtures), by its id."""
    wordings: dict[str, TaskWording] = Field(default_factory=dict)
    """Of the tasks that are one of a pair, by their id."""
    tags: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Each task's own tags, by its id."""
    skipped: dict[str, str] = Field(default_factory=dict)
    """Why a task was left out, by its id; only where all were asked for."""
    agents: tuple[dict[str, JsonValue], ...]
    """The whole configuration of each agent."""
    scripts: dict[str, str] = Field(default_factory=dict)
    """Hash of each host file that an agent's replies are read from, by its path."""
    packages: dict[str, str]
    """Version of each Python package that takes part, by name."""
    python: str
    host: str
    """Operating system and machine type."""
    commit: str | None
    """Of the checkout that deskfork ran from; None when it was installed as a package."""
    is_modified: bool | None = None
    """Whether that checkout had changes that are in no commit."""

    @model_validator(mode="before")
    @classmethod
    def _had_one_agent(cls, given: Any) -> Any:
        """Take the lock of a run that was made when a run had a single agent."""
        if isinstance(given, dict) and "agent" in given:
            return {**{key: value for key, value in given.items() if key != "agent"}, "agents": [given["agent"]]}
        return given
