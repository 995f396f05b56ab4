"""Baking tasks: running the set-up of each once, so that its trials start from what came of it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from deskfork.core.config import StrictModel
from deskfork.core.errors import InfraError, TaskError
from deskfork.sandbox.base import Sandbox, SandboxProvider
from deskfork.sandbox.templates.baked import Baked, BakeOptions
from deskfork.setup.steps import set_up
from deskfork.tasks.load import ALL, open_source, select
from deskfork.tasks.schema import Task
from deskfork.tasks.setup_key import setup_key


class BakeResult(StrictModel):
    """What came of baking one task."""

    task: str
    outcome: Literal["baked", "there already", "shared", "no set-up", "skipped", "failed"]
    """`shared`: another task of the same set-up was baked, or found, just before; `skipped`: it is no task that can be
    run."""
    template: str = ""
    key: str = ""
    memory: Literal["delta", "full", ""] = ""
    disk_mib: float = 0.0
    phases_s: dict[str, float] = Field(default_factory=dict)
    error: str = ""


def bake_tasks(
    source: Path | None,
    wanted: str,
    provider: SandboxProvider,
    *,
    options: BakeOptions,
    on_progress: Callable[[str], None],
) -> Iterator[BakeResult]:
    """Bake tasks one after the other; one that fails does not keep the others from being baked.

    Args:
        source: Where the tasks are; the project's own when None.
        wanted: `all`, or ids and prefixes with commas between.
        provider: Whose machines to freeze.
        options: For all; a task that wants a network has it in any case.
        on_progress: Told what is going on, with the task's id in front.

    Yields:
        A result for each task, as soon as it is known.

    Raises:
        ConfigError: There is no such source, no such task (TaskError: one that was named is broken), or a task's
            template is not built.
    """
    collection = open_source(source)
    seen: dict[tuple[str, str, bool], BakeResult] = {}
    for task_id in select(collection, wanted):
        try:
            task = collection.load(task_id)
            key = setup_key(task)
        except TaskError as error:
            if wanted.strip() != ALL:
                raise
            yield BakeResult(task=task_id, outcome="skipped", error=str(error))
            continue
        network = task.network or options.network
        place = (task.template, key, network)
        if not key:
            yield BakeResult(task=task.id, outcome="no set-up", template=task.template)
        elif place in seen:
            earlier = seen[place]
            outcome = "failed" if earlier.error else "shared"
            yield earlier.model_copy(update={"task": task.id, "outcome": outcome, "disk_mib": 0.0, "phases_s": {}})
        else:
            told = replace(options, network=network, on_progress=_prefixed(on_progress, task.id))
            seen[place] = _bake(task, key, provider, told)
            yield seen[place]


def _bake(task: Task, key: str, provider: SandboxProvider, options: BakeOptions) -> BakeResult:
    def prepare(sandbox: Sandbox) -> None:
        set_up(task, sandbox)

    try:
        baked = provider.bake(task.template, key, prepare, task=task.id, options=options)
    except InfraError as error:
        return BakeResult(task=task.id, outcome="failed", template=task.template, key=key, error=str(error))
    return _result(task, baked)


def _result(task: Task, baked: Baked) -> BakeResult:
    return BakeResult(
        task=task.id,
        outcome="baked" if baked.is_new else "there already",
        template=baked.template,
        key=baked.key,
        memory=baked.form,
        disk_mib=baked.disk_mib,
        phases_s=dict(baked.phases_s),
    )


def _prefixed(on_progress: Callable[[str], None], task: str) -> Callable[[str], None]:
    return lambda line: on_progress(f"{task}: {line}")
