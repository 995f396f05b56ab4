"""All that is known of one task: also of one that cannot be run, and of the other wording of its goal."""

from deskfork.core.config import StrictModel
from deskfork.core.errors import TaskError
from deskfork.tasks.schema import Task
from deskfork.tasks.solution import read_cells
from deskfork.tasks.source import TaskSource, resolve_id
from deskfork.tasks.summary import TaskSummary


class HostFileSize(StrictModel):
    """A file that a task needs on the host."""

    path: str
    """Relative to the task's root."""
    size_bytes: int


class Counterpart(StrictModel):
    """The task with the same goal and another wording."""

    id: str
    is_listed: bool
    """Whether the source knows it."""
    wording: str | None = None
    instruction: str = ""
    difference: str = ""
    """How its instruction differs, in words."""


class TaskDescription(StrictModel):
    """One task."""

    summary: TaskSummary
    task: Task | None
    """None when it cannot be run; `summary.error` says why."""
    counterpart: Counterpart | None
    files: tuple[HostFileSize, ...] = ()
    """What set-up and evaluation need on the host."""
    solution: str | None = None
    """The oracle's source."""
    problem: str = ""
    """What is wrong with the solution, if something is."""

    def flat(self) -> dict[str, object]:
        """Return it as one JSON object: the summary's keys, the task's, and `pair`, `files` and `solution_source`."""
        return {
            **(self.task.model_dump(mode="json") if self.task else {}),
            **self.summary.model_dump(mode="json"),
            "pair": self.counterpart.model_dump(mode="json") if self.counterpart else None,
            "files": [file.model_dump(mode="json") for file in self.files],
            "solution_source": self.solution,
            "problem": self.problem,
        }


def describe_task(source: TaskSource, wanted: str) -> TaskDescription:
    """Return all that is known of the task that `wanted`, an id or a prefix of one, means.

    Raises:
        TaskError: There is no such task, or there are several; one that is broken or cannot be run is described.
    """
    listed = {summary.id: summary for summary in source.list()}
    present = [task for task in source.ids() if wanted and task.startswith(wanted)]
    summary = listed[resolve_id(present or sorted(listed), wanted, source.path)]
    counterpart = _counterpart(summary, listed)
    if not summary.runnable:
        return TaskDescription(summary=summary, task=None, counterpart=counterpart)
    task = source.load(summary.id)
    files = [HostFileSize(path=str(path), size_bytes=task.host_path(path).stat().st_size) for path in task.host_files()]
    solution, problem = _solution(task)
    return TaskDescription(
        summary=summary, task=task, counterpart=counterpart, files=tuple(files), solution=solution, problem=problem
    )


def compare_wordings(one: str, other: str) -> str:
    """Say in words how instruction `other` differs from instruction `one`."""
    one, other = one.strip(), other.strip()
    if one == other:
        return "word for word the same"
    for longer, shorter, verb in ((other, one, "adds"), (one, other, "leaves out")):
        if longer.startswith(shorter):
            rest = longer[len(shorter) :].strip().splitlines()
            return f"the same text; it {verb} {len(rest)} line{'s' if len(rest) > 1 else ''} after it"
    return f"worded differently ({len(other.split())} words instead of {len(one.split())})"


def _counterpart(summary: TaskSummary, listed: dict[str, TaskSummary]) -> Counterpart | None:
    if summary.counterpart is None:
        return None
    other = listed.get(summary.counterpart)
    if other is None:
        return Counterpart(id=summary.counterpart, is_listed=False)
    difference = compare_wordings(summary.instruction, other.instruction) if other.instruction else ""
    return Counterpart(
        id=other.id, is_listed=True, wording=other.wording, instruction=other.instruction, difference=difference
    )


def _solution(task: Task) -> tuple[str | None, str]:
    if task.solution is None:
        return None, ""
    try:
        read_cells(task.solution)
    except TaskError as error:
        return None, str(error)
    return task.solution.read_text(encoding="utf-8"), ""
