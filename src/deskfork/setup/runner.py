"""What each step of a set-up asks of the guest."""

import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from deskfork.core.errors import InfraError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import Guest
from deskfork.setup import jupyterlab
from deskfork.setup.batch import Batch
from deskfork.setup.browser import Tabs
from deskfork.setup.launch import POLL_S, count_servers, start, wait_for_server, wait_for_window
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

PROGRAM_TIMEOUT_S = 60.0
# Upstream removes the script again; the agent is to find the machine as a person would.
_RUN_AND_REMOVE = '/bin/bash "$@"; code=$?; rm -f -- "$1"; exit $code'
_FORWARD = "socat tcp-listen:{listening},fork,reuseaddr,bind=127.0.0.1 tcp:127.0.0.1:{debugging}"


@dataclass
class Runner:
    """Runs the steps of one set-up, in their order."""

    steps: tuple[SetupStep, ...]
    guest: Guest
    batch: Batch
    root: Path
    opened: frozenset[str]
    deadline: Deadline
    is_strict: bool
    """Whether a program that fails is our failure."""

    def run(self, place: int) -> bool:
        """Do the step at `place`, or leave it for the batch; return whether the template had its outcome already.

        Raises:
            InfraError: It failed.
            StepFailed: One that was left for later failed.
        """
        step = self.steps[place]
        begun_s = time.monotonic()
        counted_s = sum(self.batch.durations_s.values())
        is_recognised = self._dispatch(place, step)
        # What it did itself; what it flushed of earlier steps is counted with them.
        own_s = time.monotonic() - begun_s - (sum(self.batch.durations_s.values()) - counted_s)
        self.batch.durations_s[place] = self.batch.durations_s.get(place, 0.0) + max(0.0, own_s)
        return is_recognised

    def _dispatch(self, place: int, step: SetupStep) -> bool:
        match step:
            case CopyStep():
                self.batch.add_file(place, self.root / step.source, step.target, self.deadline)
            case SupplyStep():
                self._supply(place, step)
            case ScriptStep():
                self.batch.add_file(place, self.root / step.source, step.target, self.deadline, may_be_early=True)
                argv = ("/bin/bash", "-c", _RUN_AND_REMOVE, "script", str(step.target), *step.arguments)
                self._add(place, argv, step.timeout_s)
            case BrowserStep():
                return self._browser(place, step)
            case LaunchStep():
                return self._launch(place, step)
            case ActivateWindowStep():
                # Upstream's server does not look at what becomes of it either.
                flag = "-Fa" if step.is_exact else "-a"
                self._add(place, ("wmctrl", flag, step.title), PROGRAM_TIMEOUT_S, must_succeed=False)
            case ExecuteStep():
                self._add(place, step.command, step.timeout_s, must_succeed=False, is_cut_off=True)
            case SleepStep():
                self._add(place, ("sleep", str(step.duration_s)), step.duration_s + PROGRAM_TIMEOUT_S)
        return False

    def _add(
        self,
        place: int,
        argv: tuple[str, ...],
        timeout_s: float,
        *,
        must_succeed: bool = True,
        is_cut_off: bool = False,
    ) -> None:
        if is_cut_off or not self.is_strict:
            argv = ("timeout", "--kill-after=5", str(timeout_s), *argv)
            timeout_s += 10.0
        self.batch.add_program(place, argv, timeout_s=timeout_s, must_succeed=must_succeed and self.is_strict)

    def _supply(self, place: int, step: SupplyStep) -> None:
        self.batch.add_file(place, step.source, step.target, self.deadline)
        if step.command:
            self._add(place, step.command, PROGRAM_TIMEOUT_S)

    def _browser(self, place: int, step: BrowserStep) -> bool:
        tabs = Tabs(self.guest, step.debugging_port, self.deadline)
        urls = tuple(url for url in step.urls if url not in self.opened)
        if any(urlsplit(url).scheme not in ("http", "https") for url in urls) or "browser" not in self.opened:
            self.batch.flush(self.deadline)
        if "browser" not in self.opened:
            self._start_browser(step, tabs)
            first = tabs.list()
            tabs.open(urls)
            for tab in first if urls else ():
                tabs.close(tab)
            return False
        tabs.open(urls)
        if step.urls and "jupyterlab" in self.opened and not any(map(jupyterlab.starts_jupyterlab, self.steps)):
            self._add(place, jupyterlab.remove(step.debugging_port), PROGRAM_TIMEOUT_S)
            self.opened -= {"jupyterlab"}
        return True

    def _start_browser(self, step: BrowserStep, tabs: Tabs) -> None:
        browser = ("google-chrome", f"--remote-debugging-port={step.debugging_port}", "--remote-allow-origins=*")
        forward = _FORWARD.format(listening=step.listening_port, debugging=step.debugging_port).split()
        for command in (browser, tuple(forward)):
            tabs.run(start(command))
        if not wait_until(tabs.is_reachable, self.deadline, interval_s=POLL_S):
            raise InfraError(f"the browser's debugging port {step.debugging_port} did not answer")

    def _launch(self, place: int, step: LaunchStep) -> bool:
        target = jupyterlab.jupyterlab_target(step.command)
        if target is not None and {"jupyterlab", "browser"} <= self.opened:
            timeout_s = max(1.0, self.deadline.remaining_s)
            inside = jupyterlab.inside_desktop(target)
            if inside is not None:
                self._add(place, jupyterlab.show(inside, timeout_s), timeout_s + PROGRAM_TIMEOUT_S)
                return True
            for argv in jupyterlab.replace_server(step.command, target, timeout_s):
                self._add(place, argv, timeout_s + PROGRAM_TIMEOUT_S)
            self.opened -= {"jupyterlab"}
            return False
        if target is not None:
            self.batch.flush(self.deadline)
            before = count_servers(self.guest, self.deadline)
        self._add(place, start(step.command), PROGRAM_TIMEOUT_S)
        if target is not None or step.window is not None:
            self.batch.flush(self.deadline)
        if target is not None:
            wait_for_server(self.guest, before, self.deadline)
        if step.window is not None:
            wait_for_window(self.guest, step.window, self.deadline)
        return False
