"""Bringing a fresh fork to where a task starts, and a machine that an agent has left to where it is judged.

Upstream's meaning of each step; what the template has open already is recognised and only completed. A step that fails
in a fresh fork is our failure, never the agent's. After the agent, programs may fail: what state it left is its doing.

Source: xlang-ai/Spider2-V, desktop_env/configs/general.py (`google_chrome_browser_setup`, `script_and_execute_setup`,
`copyfile_from_host_to_guest_setup`), desktop_env/controllers/setup.py (`_launch_setup`, `_execute_setup`,
`_activate_window_setup`, `_sleep_setup`), desktop_env/server/main.py (`execute_command`, `activate_window`).
"""

from dataclasses import dataclass
from pathlib import Path

from deskfork.core.errors import InfraError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.base import Guest, Sandbox
from deskfork.setup.batch import Batch, StepFailed
from deskfork.setup.jupyterlab import wait_saved
from deskfork.setup.runner import Runner
from deskfork.tasks.schema import Task
from deskfork.tasks.steps import (
    ActivateWindowStep,
    BrowserStep,
    CopyStep,
    ExecuteStep,
    LaunchStep,
    ScriptStep,
    SetupStep,
    SleepStep,
    SupplyStep,
)

SETUP_TIMEOUT_S = 600.0
"""For all steps of a task together, unless a run says otherwise."""


@dataclass(frozen=True)
class SetupOutcome:
    """One step that was done."""

    step: str
    duration_s: float
    """A file that travels with a later step's costs nothing here, and its time is counted there."""
    is_recognised: bool = False
    """The template had its outcome already, and it was only completed."""


def describe(step: SetupStep) -> str:
    """Name a step in a few words."""
    match step:
        case CopyStep():
            return f"copy {step.source.name} to {step.target}"
        case SupplyStep():
            return f"supply {step.target}"
        case ScriptStep():
            return f"run script {step.source.name}"
        case BrowserStep():
            return f"open browser at {', '.join(step.urls) or 'its first page'}"
        case LaunchStep():
            return f"launch {' '.join(step.command)}"
        case ActivateWindowStep():
            return f"bring window {step.title} to the front"
        case ExecuteStep():
            return f"execute {' '.join(step.command)}"
        case SleepStep():
            return f"sleep {step.duration_s:g} s"


def run_setup(
    steps: tuple[SetupStep, ...],
    guest: Guest,
    *,
    root: Path,
    opened: frozenset[str],
    deadline: Deadline,
    task: str = "this task",
) -> list[SetupOutcome]:
    """Run a task's `setup` in a fresh fork, in its order.

    Args:
        steps: What to do.
        guest: Where to do it.
        root: Base of the steps' host files (`Task.root`).
        opened: What the template has open already (`SandboxFacts.opened`).
        deadline: When all steps must be done.
        task: The task's id, for the message of an error.

    Raises:
        InfraError: A step failed; says which, and what came back.
    """
    return _run(steps, guest, root=root, opened=opened, deadline=deadline, task=task, is_strict=True)


def set_up(task: Task, sandbox: Sandbox, *, timeout_s: float = SETUP_TIMEOUT_S) -> list[SetupOutcome]:
    """Bring a fresh fork to where `task` starts; what its template has open is recognised.

    Raises:
        InfraError: A step failed; says which, and what came back.
    """
    return run_setup(
        task.setup,
        sandbox,
        root=task.root,
        opened=sandbox.facts.opened,
        deadline=Deadline.after(timeout_s),
        task=task.id,
    )


def run_post_setup(
    steps: tuple[SetupStep, ...], guest: Guest, *, root: Path, deadline: Deadline, task: str = "this task"
) -> list[SetupOutcome]:
    """Run an evaluator's `post_setup` in the machine that an agent has left; programs may fail or overrun in it.

    Where a program of it may have asked JupyterLab to save (a key was pressed, say), that is waited for, a short while:
    upstream's machines are fast enough to have saved when the file is fetched.

    Args:
        steps: What to do.
        guest: Where to do it.
        root: Base of the steps' host files (`Task.root`).
        deadline: When all steps must be done.
        task: The task's id, for the message of an error.

    Raises:
        InfraError: A file could not be sent, or the guest was not to be reached.
    """
    return _run(steps, guest, root=root, opened=frozenset(), deadline=deadline, task=task, is_strict=False)


def _run(
    steps: tuple[SetupStep, ...],
    guest: Guest,
    *,
    root: Path,
    opened: frozenset[str],
    deadline: Deadline,
    task: str,
    is_strict: bool,
) -> list[SetupOutcome]:
    with Batch(guest) as batch:
        runner = Runner(steps, guest, batch, root, opened, deadline, is_strict)
        recognised = []
        place = 0
        try:
            for place in range(len(steps)):
                recognised.append(runner.run(place))
            if not is_strict and any(isinstance(step, ExecuteStep) for step in steps):
                batch.add_program(place, wait_saved(), timeout_s=60.0, must_succeed=False)
            batch.flush(deadline)
        except StepFailed as failed:
            raise _named(failed.error, task, failed.place, steps) from failed
        except InfraError as error:
            raise _named(error, task, place, steps) from error
        return [
            SetupOutcome(describe(step), batch.durations_s.get(place, 0.0), recognised[place])
            for place, step in enumerate(steps)
        ]


def _named(error: InfraError, task: str, place: int, steps: tuple[SetupStep, ...]) -> InfraError:
    return type(error)(f"set-up of {task}, step {place + 1} ({describe(steps[place])}): {error}")
