"""Bringing a fresh fork to where a task starts.

Upstream's meaning of each step; what the template has open already is recognised and only completed. A step that fails
is our failure, never the agent's.

Source: xlang-ai/Spider2-V, desktop_env/configs/general.py (`google_chrome_browser_setup`, `script_and_execute_setup`,
`copyfile_from_host_to_guest_setup`), desktop_env/controllers/setup.py (`_launch_setup`).
"""

import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from deskfork.core.errors import InfraError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import Guest
from deskfork.setup.browser import POLL_S, Tabs
from deskfork.setup.command import run_command
from deskfork.setup.files import FileBatch
from deskfork.setup.launch import is_already_served, jupyterlab_target, launch, show_in_jupyterlab
from deskfork.tasks.schema import BrowserStep, CopyStep, LaunchStep, ScriptStep, SetupStep

# Upstream removes the script again; the agent is to find the machine as a person would.
_RUN_AND_REMOVE = '/bin/bash "$@"; code=$?; rm -f -- "$1"; exit $code'
_FORWARD = "socat tcp-listen:{listening},fork,reuseaddr,bind=127.0.0.1 tcp:127.0.0.1:{debugging}"


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
        case ScriptStep():
            return f"run script {step.source.name}"
        case BrowserStep():
            return f"open browser at {', '.join(step.urls) or 'its first page'}"
        case LaunchStep():
            return f"launch {' '.join(step.command)}"


def run_setup(
    steps: tuple[SetupStep, ...],
    guest: Guest,
    *,
    root: Path,
    opened: frozenset[str],
    deadline: Deadline,
    task: str = "this task",
) -> list[SetupOutcome]:
    """Run `steps` in their order.

    Args:
        steps: A task's `setup`, or its evaluator's `post_setup`.
        guest: Where to run them.
        root: Base of the steps' host files (`Task.root`).
        opened: What the template has open already (`SandboxFacts.opened`).
        deadline: When all steps must be done.
        task: The task's id, for the message of an error.

    Raises:
        InfraError: A step failed; says which, and what came back.
    """
    outcomes = []
    with FileBatch(guest) as files:
        runner = _Runner(guest, files, root, opened, deadline)
        for place, step in enumerate(steps):
            started = time.monotonic()
            try:
                is_recognised = runner.run(step)
                if place == len(steps) - 1:
                    files.flush(deadline)
            except InfraError as error:
                raise type(error)(f"set-up of {task}, step {place + 1} ({describe(step)}): {error}") from error
            outcomes.append(SetupOutcome(describe(step), time.monotonic() - started, is_recognised))
    return outcomes


@dataclass(frozen=True)
class _Runner:
    guest: Guest
    files: FileBatch
    root: Path
    opened: frozenset[str]
    deadline: Deadline

    def run(self, step: SetupStep) -> bool:
        match step:
            case CopyStep():
                self.files.add(self.root / step.source, step.target)
                return False
            case ScriptStep():
                return self._script(step)
            case BrowserStep():
                return self._browser(step)
            case LaunchStep():
                return self._launch(step)

    def _script(self, step: ScriptStep) -> bool:
        self.files.add(self.root / step.source, step.target)
        self.files.flush(self.deadline)
        argv = ["/bin/bash", "-c", _RUN_AND_REMOVE, "script", str(step.target), *step.arguments]
        run_command(self.guest, argv, self.deadline, timeout_s=step.timeout_s)
        return False

    def _browser(self, step: BrowserStep) -> bool:
        if any(urlsplit(url).scheme not in ("http", "https") for url in step.urls):
            self.files.flush(self.deadline)
        tabs = Tabs(self.guest, step.debugging_port, self.deadline)
        if "browser" in self.opened:
            tabs.open(step.urls)
            return True
        self._start_browser(step, tabs)
        first = tabs.list()
        tabs.open(step.urls)
        for tab in first if step.urls else ():
            tabs.close(tab)
        return False

    def _start_browser(self, step: BrowserStep, tabs: Tabs) -> None:
        browser = ("google-chrome", f"--remote-debugging-port={step.debugging_port}", "--remote-allow-origins=*")
        forward = _FORWARD.format(listening=step.listening_port, debugging=step.debugging_port).split()
        launch(LaunchStep(command=browser), self.guest, self.deadline)
        launch(LaunchStep(command=tuple(forward)), self.guest, self.deadline)
        if not wait_until(tabs.is_reachable, self.deadline, interval_s=POLL_S):
            raise InfraError(f"the browser's debugging port {step.debugging_port} did not answer")

    def _launch(self, step: LaunchStep) -> bool:
        self.files.flush(self.deadline)
        target = jupyterlab_target(step.command)
        if target is not None and is_already_served(target, self.opened):
            show_in_jupyterlab(target, Tabs(self.guest, BrowserStep().debugging_port, self.deadline))
            return True
        launch(step, self.guest, self.deadline)
        return False
