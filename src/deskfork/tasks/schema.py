"""What a task is, whatever format it was read from: instruction, set-up steps, evaluator and fixtures."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from deskfork.core.config import StrictModel
from deskfork.tasks.checks import EvaluatorSpec, HostFile, ScriptOutput
from deskfork.tasks.steps import CopyStep, ScriptStep, SetupStep


class Task(StrictModel):
    """One task, ready to be run: every host file it names exists."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
    instruction: str = Field(min_length=1)
    source: Literal["deskfork", "spider2v"] = "deskfork"
    tags: tuple[str, ...] = ()
    related_apps: tuple[str, ...] = ()
    template: Literal["desktop", "jupyter"] = "desktop"
    network: bool = False
    """Whether the guest may open connections to the outside."""
    setup: tuple[SetupStep, ...] = ()
    evaluator: EvaluatorSpec
    solution: Path | None = None
    """Absolute host path of the oracle's solution."""
    counterpart: str | None = None
    """Id of the task with the same goal and another wording."""
    wording: Literal["abstract", "verbose"] | None = None
    root: Path
    """Absolute base of the relative host paths."""

    def host_path(self, path: Path) -> Path:
        """Return the absolute place of a host file of this task."""
        return self.root / path

    def host_files(self) -> tuple[Path, ...]:
        """Return every host file that set-up and evaluation need, relative to `root`."""
        steps = (*self.setup, *self.evaluator.post_setup)
        found = [step.source for step in steps if isinstance(step, CopyStep | ScriptStep)]
        for check in self.evaluator.checks:
            if isinstance(check.result, ScriptOutput):
                found.append(check.result.source)
            if isinstance(check.expected, HostFile):
                found.append(check.expected.path)
        return tuple(dict.fromkeys(found))
