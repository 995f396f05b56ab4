"""Tasks of a Spider2-V checkout, read as it is: `evaluation_examples/examples/DOMAIN/ID/ID.json`.

What can be run are the folders that are there; the index files (test_all.json and its siblings) tell which are missing.
"""

import json
from pathlib import Path
from typing import Literal

import yaml
from pydantic import ValidationError

from deskfork.core.errors import ConfigError, TaskError
from deskfork.tasks.checks import EvaluatorSpec
from deskfork.tasks.own import own_examples
from deskfork.tasks.schema import Task
from deskfork.tasks.source import (
    MAX_TASK_BYTES,
    Ids,
    Summaries,
    check_files,
    explain,
    read_bounded,
    resolve_id,
)
from deskfork.tasks.spider2v.checks import translate_evaluator
from deskfork.tasks.spider2v.foreign import ForeignTask, Unsupported
from deskfork.tasks.spider2v.index import IndexedTask, read_index
from deskfork.tasks.spider2v.needs import describe_needs, find_needs
from deskfork.tasks.spider2v.steps import translate_step
from deskfork.tasks.spider2v.supplements import supply_steps, with_supplies
from deskfork.tasks.steps import BrowserStep, LaunchStep, SetupStep
from deskfork.tasks.summary import TaskSummary

EXAMPLES = "evaluation_examples/examples"
SOLUTIONS = "spider2v/solutions"


class Spider2VTasks:
    """The tasks of one checkout.

    Source: xlang-ai/Spider2-V, desktop_env/envs/desktop_env.py (`_set_task_info`) for the meaning of a task's keys.
    """

    def __init__(self, path: Path, solutions: Path | None = None) -> None:
        """Take the checkout at `path`; touch nothing yet.

        Args:
            path: Top of the checkout.
            solutions: Folder with our solutions and their index.yaml; by default that of the project's own examples.
        """
        self._path = path
        self._solutions = solutions

    @property
    def path(self) -> Path:
        """Top of the checkout."""
        return self._path

    def ids(self) -> Ids:
        """Return the ids of all tasks whose folders are there, sorted."""
        return sorted(self._folders())

    def load(self, task: str) -> Task:
        """Read one task, by its id or an unambiguous prefix of it.

        Raises:
            TaskError: There is no such task, there are several, it is broken, or needs what this version cannot do.
        """
        folders = self._folders()
        is_there = any(found.startswith(task) for found in folders)
        found = resolve_id(sorted(folders if is_there else {*folders, *read_index(self._path)[0]}), task, self._path)
        if found not in folders:
            raise TaskError(f"task {found} cannot be run: {describe_needs(read_index(self._path)[0][found].needs())}")
        return self._translate(self._read(found, folders[found]), folders[found], self._known_solutions())

    def list(self) -> Summaries:
        """Describe all tasks of the benchmark; what is wrong with one, or missing here, is a field of its summary."""
        folders = self._folders()
        try:
            solutions = self._known_solutions()
        except ConfigError:
            solutions = {}
        listed = [self._summarise(task, folder, solutions) for task, folder in folders.items()]
        missing = [_missing(task, known) for task, known in read_index(self._path)[0].items() if task not in folders]
        return sorted([*listed, *missing], key=lambda summary: summary.id)

    def complaints(self) -> tuple[str, ...]:
        """Return what is wrong with the checkout's index files and with the index of solutions."""
        _, complaints = read_index(self._path)
        try:
            self._known_solutions()
        except ConfigError as error:
            return (*complaints, str(error))
        return complaints

    def _folders(self) -> dict[str, Path]:
        found = (self._path / EXAMPLES).glob("*/*")
        return {folder.name: folder for folder in found if folder.is_dir()}

    def _read(self, task: str, folder: Path) -> ForeignTask:
        path = folder / f"{task}.json"
        text = read_bounded(path, task)
        try:
            fields = json.loads(text)
        except RecursionError as error:
            raise TaskError(f"task {task}: {path} is nested too deep; restore it from upstream") from error
        except ValueError as error:
            line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
            raise TaskError(f"task {task}: {path} is broken JSON at line {line}; restore it from upstream") from error
        try:
            read = ForeignTask.model_validate(fields)
        except ValidationError as error:
            raise TaskError(f"task {task}: {path} has a wrong {explain(error)}; restore it from upstream") from error
        if read.id != task:
            raise TaskError(f"task {task}: {path} calls itself {read.id!r}; folder and id must be equal")
        return read

    def _translate(self, read: ForeignTask, folder: Path, solutions: dict[str, Path]) -> Task:
        if needs := find_needs(read):
            raise TaskError(f"task {read.id} cannot be run: {describe_needs(needs)}")
        path = folder / f"{read.id}.json"
        try:
            setup = tuple(translate_step(step, f"config.{place}") for place, step in enumerate(read.config))
            setup = with_supplies(setup, supply_steps(read.id, folder, self._path))
            evaluator: EvaluatorSpec = translate_evaluator(read.evaluator)
            task = Task(
                id=read.id,
                instruction=read.instruction,
                source="spider2v",
                tags=read.tags,
                related_apps=read.related_apps,
                template=_template(setup),
                setup=setup,
                evaluator=evaluator,
                solution=solutions.get(read.id),
                counterpart=read.counterpart,
                wording=_wording(read.tags),
                root=self._path.resolve(),
            )
        except Unsupported as error:
            raise TaskError(f"task {read.id}: {path} {error}; `deskfork task list` says which tasks run") from error
        except ValidationError as error:
            raise TaskError(f"task {read.id}: {path} has a wrong {explain(error)}; restore it from upstream") from error
        return check_files(task)

    def _summarise(self, task: str, folder: Path, solutions: dict[str, Path]) -> TaskSummary:
        summary = TaskSummary(id=task, source="spider2v", has_solution=task in solutions)
        try:
            read = self._read(task, folder)
            summary = summary.model_copy(
                update={
                    "instruction": read.instruction,
                    "tags": read.tags,
                    "related_apps": read.related_apps or (folder.parent.name,),
                    "metrics": tuple(read.evaluator.metrics),
                    "needs": find_needs(read),
                    "counterpart": read.counterpart,
                    "wording": _wording(read.tags),
                }
            )
            translated = self._translate(read, folder, solutions)
        except TaskError as error:
            return summary.model_copy(update={"runnable": False, "error": str(error)})
        return summary.model_copy(update={"template": translated.template})

    def _known_solutions(self) -> dict[str, Path]:
        folder = self._solutions or own_examples() / SOLUTIONS
        index = folder / "index.yaml"
        if not index.is_file():
            return {}
        try:
            named = yaml.safe_load(index.read_text(encoding="utf-8")[:MAX_TASK_BYTES])
        except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
            raise ConfigError(f"the index of solutions {index} cannot be read: {error}; correct it") from error
        if not isinstance(named, dict):
            raise ConfigError(f"the index of solutions {index} must map task ids to files; correct it")
        return {str(task): _solution(folder, file, index) for task, file in named.items()}


def _missing(task: str, known: IndexedTask) -> TaskSummary:
    needs = known.needs()
    return TaskSummary(
        id=task,
        source="spider2v",
        related_apps=(known.application,),
        wording=known.wording,
        runnable=False,
        needs=needs,
        error=f"task {task} cannot be run: {describe_needs(needs)}",
    )


def _solution(folder: Path, file: object, index: Path) -> Path:
    place = (folder / str(file)).resolve()
    if not place.is_file() or not place.is_relative_to(folder.resolve()):
        raise ConfigError(f"{index} names {file!r}, which is no file beside it; correct the index")
    return place


def _template(setup: tuple[SetupStep, ...]) -> Literal["desktop", "jupyter"]:
    """Choose the template that has most of `setup` done already."""
    for step in setup:
        if isinstance(step, BrowserStep) or (isinstance(step, LaunchStep) and "jupyter lab" in " ".join(step.command)):
            return "jupyter"
    return "desktop"


def _wording(tags: tuple[str, ...]) -> Literal["abstract", "verbose"] | None:
    if "verbose" in tags:
        return "verbose"
    return "abstract" if "abstract" in tags else None
