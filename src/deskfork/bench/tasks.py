"""Measuring how long a task takes from its fork until an agent may start."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from pydantic import Field

from deskfork.bench.figures import Figure
from deskfork.core.config import StrictModel
from deskfork.core.errors import InfraError, TaskError
from deskfork.sandbox.base import SandboxProvider
from deskfork.setup.steps import set_up
from deskfork.tasks.load import ALL, open_source, select
from deskfork.tasks.schema import Task
from deskfork.tasks.setup_key import setup_key


class StepTime(StrictModel):
    """One step of a task's set-up."""

    step: str
    duration_s: float


class TaskTime(StrictModel):
    """How long one task took to be ready for its agent."""

    task: str
    template: str = ""
    ready_s: float | None = None
    """From the family template: fork and set-up."""
    fork_s: float | None = None
    steps: tuple[StepTime, ...] = ()
    baked_s: float | None = None
    """From what `template bake` made of the task; None where it was not baked."""
    error: str = ""
    """Why it was not measured, or failed."""


class TaskTimes(StrictModel):
    """What `deskfork bench tasks` measures."""

    tasks: tuple[TaskTime, ...]
    ready_s: Figure | None = Field(description="Over the tasks, from their family templates.")
    baked_s: Figure | None = Field(description="Over the tasks that were baked.")


def bench_tasks(
    source: Path | None,
    wanted: str,
    provider: SandboxProvider,
    on_progress: Callable[[str], None],
) -> TaskTimes:
    """Measure, one after the other, from fork to where the agent may start.

    Args:
        source: Where the tasks are; the project's own when None.
        wanted: `all`, or ids and prefixes with commas between.
        provider: Whose machines to fork; the templates must be built.
        on_progress: Told how long each task took.

    Raises:
        ConfigError: There is no such source, no such task (TaskError: one that was named is broken), or a template is
            not built.
    """
    collection = open_source(source)
    times = []
    for task_id in select(collection, wanted):
        try:
            task = collection.load(task_id)
        except TaskError as error:
            if wanted.strip() != ALL:
                raise
            times.append(TaskTime(task=task_id, error=str(error)))
            continue
        times.append(_measure(task, provider))
        on_progress(_told(times[-1]))
    return TaskTimes(
        tasks=tuple(times),
        ready_s=_figure(time.ready_s for time in times),
        baked_s=_figure(time.baked_s for time in times),
    )


def _measure(task: Task, provider: SandboxProvider) -> TaskTime:
    time_ = TaskTime(task=task.id, template=task.template)
    try:
        key = setup_key(task)
        return time_.model_copy(update={**_from_family(task, provider), "baked_s": _from_baked(task, key, provider)})
    except InfraError as error:
        return time_.model_copy(update={"error": str(error)})


def _from_family(task: Task, provider: SandboxProvider) -> dict[str, object]:
    begun_s = time.monotonic()
    with provider.fork(task.template, network=task.network) as sandbox:
        forked_s = time.monotonic()
        done = set_up(task, sandbox)
        ready_s = time.monotonic()
    steps = tuple(StepTime(step=step.step, duration_s=round(step.duration_s, 3)) for step in done)
    return {"ready_s": round(ready_s - begun_s, 3), "fork_s": round(forked_s - begun_s, 3), "steps": steps}


def _from_baked(task: Task, key: str, provider: SandboxProvider) -> float | None:
    if not key:
        return None
    begun_s = time.monotonic()
    with provider.fork(task.template, network=task.network, baked=key) as sandbox:
        ready_s = time.monotonic()
        return round(ready_s - begun_s, 3) if sandbox.facts.baked else None


def _figure(values: Iterable[float | None]) -> Figure | None:
    known = [value for value in values if value is not None]
    return Figure.of(known) if known else None


def _told(measured: TaskTime) -> str:
    if measured.ready_s is None:
        return f"{measured.task[:8]}: {measured.error}"
    baked = "" if measured.baked_s is None else f", baked {measured.baked_s:.1f} s"
    return f"{measured.task[:8]}: ready in {measured.ready_s:.1f} s{baked}"
