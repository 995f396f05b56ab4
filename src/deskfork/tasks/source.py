"""What every collection of tasks offers, and what the readers of both formats share."""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from deskfork.core.errors import TaskError
from deskfork.tasks.schema import Task
from deskfork.tasks.summary import TaskSummary

MAX_TASK_BYTES = 1024 * 1024
MAX_REASON_CHARS = 300


Ids = list[str]
Summaries = list[TaskSummary]


class TaskSource(Protocol):
    """A collection of tasks on the host's disk."""

    @property
    def path(self) -> Path:
        """Where it lies."""
        ...

    def ids(self) -> Ids:
        """Return the ids of all tasks that are there, broken ones too, sorted."""
        ...

    def load(self, task: str) -> Task:
        """Read one task, by its id or an unambiguous prefix of it.

        Raises:
            TaskError: There is no such task, there are several, or it is broken or needs what this version cannot do.
        """
        ...

    def list(self) -> Summaries:
        """Describe all tasks; what is wrong with one is a field of its summary."""
        ...

    def complaints(self) -> tuple[str, ...]:
        """Return a sentence for each thing that is wrong with the collection and spoils no task."""
        ...


def resolve_id(ids: Sequence[str], wanted: str, where: Path) -> str:
    """Return the id that `wanted` means: itself, or the only one that starts with it.

    Raises:
        TaskError: None does, or several do.
    """
    if wanted in ids:
        return wanted
    found = sorted(task for task in ids if wanted and task.startswith(wanted))
    if len(found) == 1:
        return found[0]
    if found:
        shown = ", ".join(found[:8]) + (", …" if len(found) > 8 else "")
        raise TaskError(f"task {wanted!r} is ambiguous in {where}: it may be {shown}; give more of the id")
    close = difflib.get_close_matches(wanted, ids, n=3, cutoff=0.6)
    close += [task for task in ids if wanted and wanted in task and task not in close][:3]
    hint = f"did you mean {' or '.join(close)}?" if close else "`deskfork task list` shows what is there"
    raise TaskError(f"there is no task {wanted!r} in {where}: {hint}")


def read_bounded(path: Path, task: str) -> str:
    """Return the text of a task's own file.

    Raises:
        TaskError: It is missing, no UTF-8 text, or larger than `MAX_TASK_BYTES`.
    """
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_TASK_BYTES + 1)
    except OSError as error:
        raise TaskError(f"task {task}: {path} cannot be read ({error.strerror}); restore or remove it") from error
    if len(raw) > MAX_TASK_BYTES:
        raise TaskError(f"task {task}: {path} is larger than {MAX_TASK_BYTES // 1024} KiB, so it is no task file")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise TaskError(f"task {task}: {path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error


def explain(error: ValidationError) -> str:
    """Return the first thing that is wrong, with its place, in one line."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "the top level"
    message = first["msg"].removeprefix("Value error, ")
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{place}: {message}"[:MAX_REASON_CHARS] + more


def check_files(task: Task) -> Task:
    """Return `task` when all its host files are there.

    Raises:
        TaskError: One is missing, no regular file, or leads out of the task's root by a link.
    """
    root = task.root.resolve()
    for relative in task.host_files():
        place = root / relative
        if not place.resolve().is_relative_to(root):
            raise TaskError(f"task {task.id}: {relative} is a link that leads out of {root}; copy the file instead")
        if not place.is_file():
            raise TaskError(f"task {task.id}: {relative} is missing from {root}; restore it")
    return task
