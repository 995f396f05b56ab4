"""Finding tasks: which collection a path is, and which of its tasks were asked for."""

from pathlib import Path
from typing import Literal

from deskfork.core.errors import ConfigError
from deskfork.tasks.own import TASK_FILE, OwnTasks, own_examples
from deskfork.tasks.source import TaskSource, resolve_id
from deskfork.tasks.spider2v.source import EXAMPLES, Spider2VTasks
from deskfork.tasks.summary import TaskSummary

__all__ = ["TaskSource", "TaskSummary", "open_source", "select"]

ALL = "all"


def open_source(path: Path | None) -> TaskSource:
    """Open the collection of tasks at `path`, or the project's own.

    Args:
        path: A Spider2-V checkout, a folder of tasks in the project's own format, or None for the project's own tasks.

    Raises:
        ConfigError: `path` is neither.
    """
    if path is None:
        return OwnTasks(own_examples())
    if not path.is_dir():
        raise ConfigError(f"there is no folder {path}: --source wants a Spider2-V checkout or a folder of tasks")
    if any(found.is_dir() for found in (path / EXAMPLES).glob("*/*")):
        return Spider2VTasks(path)
    if any(path.glob(f"*/{TASK_FILE}")):
        return OwnTasks(path)
    raise ConfigError(
        f"{path} holds no tasks: expected {EXAMPLES}/DOMAIN/ID/ID.json (a Spider2-V checkout) or ID/{TASK_FILE}"
    )


def select(source: TaskSource, wanted: str, wording: Literal["abstract", "verbose"] | None = None) -> list[str]:
    """Return the full ids that are asked for.

    Args:
        source: Where the tasks lie.
        wanted: `all`, or ids and prefixes with commas between.
        wording: Of the two tasks of a pair only this one; tasks that are worded otherwise, or once only, are left out.

    Raises:
        ConfigError: Nothing is named, or nothing is left (TaskError: one is unknown or ambiguous).
    """
    named = _named(source, wanted)
    if wording is None:
        return named
    known = {summary.id: summary for summary in source.list()}
    # What cannot even be read has no wording; it is left in, for the reader to refuse with the reason.
    kept = [task for task in named if known[task].wording in (wording, None if known[task].error else wording)]
    if not kept:
        others = [known[task].counterpart for task in named if known[task].counterpart in known]
        hint = f"; their counterparts are {', '.join(map(str, others[:4]))}" if others else ""
        raise ConfigError(f"none of the {len(named)} tasks that were asked for is worded {wording}{hint}")
    return kept


def _named(source: TaskSource, wanted: str) -> list[str]:
    ids = source.ids()
    if wanted.strip() == ALL:
        return ids
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    if not names:
        raise ConfigError("no task was named: give ids with commas between, or `all`")
    return list(dict.fromkeys(_resolve(source, ids, name) for name in names))


def _resolve(source: TaskSource, ids: list[str], name: str) -> str:
    if any(task.startswith(name) for task in ids):
        return resolve_id(ids, name, source.path)
    # It raises, and knows more than the ids do: the task may be one that is missing here.
    return source.load(name).id
