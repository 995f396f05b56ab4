"""One line of a list of tasks, and what a task may need that is not here."""

from typing import Literal

from deskfork.core.config import StrictModel

NeedKind = Literal["folder", "account", "program", "download", "step", "getter", "metric"]


class Need(StrictModel):
    """One thing that a task needs and that is not here."""

    kind: NeedKind
    name: str
    named_by: tuple[str, ...] = ()
    """The steps, getters, metrics or applications of the task that ask for it."""


class TaskSummary(StrictModel):
    """What is known of a task before it is run; made for broken and missing tasks too."""

    id: str
    source: Literal["deskfork", "spider2v"]
    instruction: str = ""
    tags: tuple[str, ...] = ()
    related_apps: tuple[str, ...] = ()
    """The tools that the task is about."""
    metrics: tuple[str, ...] = ()
    """Of its evaluator."""
    template: Literal["desktop", "jupyter"] | None = None
    network: bool = False
    counterpart: str | None = None
    wording: Literal["abstract", "verbose"] | None = None
    has_solution: bool = False
    runnable: bool = True
    needs: tuple[Need, ...] = ()
    """What is missing here, where that is why it cannot be run."""
    error: str = ""
    """Why it cannot be run; empty when it can."""
