"""By what two tasks' set-ups are known to be the same."""

import hashlib
import json

from deskfork.core.errors import TaskError
from deskfork.tasks.schema import Task
from deskfork.tasks.steps import CopyStep, ScriptStep, SetupStep, SupplyStep

_FORMAT = 1
"""Counted up when the same steps leave another desktop than they did."""


def setup_key(task: Task) -> str:
    """Return a hash of a task's set-up: its steps and the bytes of every host file that they name.

    Where a host file lies is no part of it: the two tasks of a pair, whose copies of the same files lie in two folders,
    have one key.

    Returns:
        Hexadecimal; empty for a task without set-up.

    Raises:
        TaskError: A file cannot be read.
    """
    if not task.setup:
        return ""
    ingredients = [_described(task, step) for step in task.setup]
    return hashlib.sha256(json.dumps([_FORMAT, ingredients], sort_keys=True).encode()).hexdigest()


def _described(task: Task, step: SetupStep) -> dict[str, object]:
    described = step.model_dump(mode="json", exclude={"source"})
    if isinstance(step, CopyStep | ScriptStep | SupplyStep):
        path = task.host_path(step.source)
        try:
            with path.open("rb") as stream:
                described["content"] = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise TaskError(f"task {task.id}: {path} cannot be read ({error.strerror}); restore it") from error
    return described
