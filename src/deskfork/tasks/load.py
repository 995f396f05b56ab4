"""Finding tasks: which collection a path is, and which of its tasks were asked for."""

from pathlib import Path

from deskfork.core.errors import ConfigError
from deskfork.tasks.own import TASK_FILE, OwnTasks, own_examples
from deskfork.tasks.source import TaskSource, resolve_id
from deskfork.tasks.spider2v import EXAMPLES, Spider2VTasks
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


def select(source: TaskSource, wanted: str) -> list[str]:
    """Return the full ids that `wanted` names: `all`, or ids and prefixes with commas between.

    Raises:
        ConfigError: Nothing is named (TaskError: one is unknown or ambiguous).
    """
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
