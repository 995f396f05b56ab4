"""The project's own format: a folder a task, with task.yaml, its files and its solution."""

from pathlib import Path

import yaml
from pydantic import ValidationError

from deskfork.core.errors import ConfigError, TaskError
from deskfork.tasks.schema import Task
from deskfork.tasks.source import Ids, Summaries, check_files, explain, read_bounded, resolve_id
from deskfork.tasks.summary import TaskSummary

TASK_FILE = "task.yaml"
_SET_BY_PLACE = ("id", "source", "root")


def own_examples() -> Path:
    """Return the folder of the project's own tasks: beside the package when installed, else in the repository.

    Raises:
        ConfigError: It is in neither place.
    """
    package = Path(__file__).resolve().parents[1]
    places = [package / "evaluation_examples", package.parents[1] / "evaluation_examples"]
    for place in places:
        if place.is_dir():
            return place
    raise ConfigError(f"the project's own tasks are missing: expected them in {places[1]}; name a folder with --source")


class OwnTasks:
    """Tasks in the project's own format, one folder each."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def path(self) -> Path:
        """Where they lie."""
        return self._path

    def ids(self) -> Ids:
        """Return the ids of all tasks, which are the names of their folders, sorted."""
        return sorted(found.parent.name for found in self._path.glob(f"*/{TASK_FILE}"))

    def load(self, task: str) -> Task:
        """Read one task, by its id or an unambiguous prefix of it.

        Raises:
            TaskError: There is no such task, there are several, or it is broken.
        """
        found = resolve_id(self.ids(), task, self._path)
        root = (self._path / found).resolve()
        fields = _read(root / TASK_FILE, found)
        solution = fields.pop("solution", None)
        try:
            read = Task.model_validate({**fields, "id": found, "source": "deskfork", "root": root})
        except ValidationError as error:
            raise TaskError(
                f"task {found}: {root / TASK_FILE} has a wrong {explain(error)}; "
                "evaluation_examples/README.md shows the format"
            ) from error
        if any(step.type == "supply" for step in (*read.setup, *read.evaluator.post_setup)):
            raise TaskError(f"task {found}: {root / TASK_FILE} has a step of type supply, which is not for task files")
        if solution is not None:
            read = read.model_copy(update={"solution": _solution(root, solution, found)})
        return check_files(read)

    def list(self) -> Summaries:
        """Describe all tasks; what is wrong with one is a field of its summary."""
        return [self._summarise(task) for task in self.ids()]

    def complaints(self) -> tuple[str, ...]:
        """Return nothing: there is no more to a collection than its tasks."""
        return ()

    def _summarise(self, task: str) -> TaskSummary:
        try:
            read = self.load(task)
        except TaskError as error:
            return TaskSummary(id=task, source="deskfork", runnable=False, error=str(error))
        return TaskSummary(
            id=task,
            source="deskfork",
            instruction=read.instruction,
            tags=read.tags,
            related_apps=read.related_apps,
            metrics=tuple(check.metric for check in read.evaluator.checks),
            template=read.template,
            network=read.network,
            counterpart=read.counterpart,
            wording=read.wording,
            has_solution=read.solution is not None,
        )


def _read(path: Path, task: str) -> dict[str, object]:
    try:
        fields = yaml.safe_load(read_bounded(path, task))
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        where = f"line {place.line + 1}" if place is not None else "somewhere"
        raise TaskError(f"task {task}: {path} is broken YAML at {where}; correct it") from error
    except (RecursionError, ValueError) as error:
        raise TaskError(f"task {task}: {path} holds a value that YAML cannot read; correct it") from error
    if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
        raise TaskError(f"task {task}: {path} must be a mapping with an instruction, set-up and evaluator")
    for key in _SET_BY_PLACE:
        if key in fields:
            raise TaskError(f"task {task}: {path} sets {key!r}, which its folder decides; remove the line")
    return fields


def _solution(root: Path, named: object, task: str) -> Path:
    place = (root / named).resolve() if isinstance(named, str) else root
    if not place.is_file() or not place.is_relative_to(root):
        raise TaskError(f"task {task}: its solution {named!r} is no file in {root}; correct the name or remove it")
    return place
