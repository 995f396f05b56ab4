"""Real machines, and the command as a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from browser import Page, chromium, find_chromium
from deskfork.sandbox.base import SandboxProvider
from deskfork.sandbox.provider import VmProvider

COMMAND = [sys.executable, "-c", "from deskfork.cli.main import main; main()"]
Opened = Callable[[str], AbstractContextManager[SandboxProvider]]


@dataclass(frozen=True)
class Answer:
    """What the command said, and its exit code."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("qemu", marks=pytest.mark.vm),
        pytest.param("docker", marks=[pytest.mark.vm, pytest.mark.docker]),
    ],
)
def provider(request: pytest.FixtureRequest, opened: Opened) -> Iterator[VmProvider]:
    """Each provider of real machines."""
    with opened(str(request.param)) as provider:
        assert isinstance(provider, VmProvider)
        yield provider


@pytest.fixture(scope="session")
def qemu(opened: Opened) -> Iterator[VmProvider]:
    """The provider `qemu`, for what does not depend on how QEMU is started."""
    with opened("qemu") as provider:
        assert isinstance(provider, VmProvider)
        yield provider


@pytest.fixture(scope="session")
def deskfork() -> Callable[..., Answer]:
    """Runs the command, with another cache if one is named."""

    def run(*arguments: str | Path, cache: Path | None = None, timeout_s: float = 300.0) -> Answer:
        env = {**os.environ, "DESKFORK_CACHE": str(cache)} if cache else dict(os.environ)
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=timeout_s, env=env, check=False
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the command and returns its process; what still runs afterwards is killed."""
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: str | Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait(20)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One browser for all tests of a module; skips where there is none, but not where the tests must be complete."""
    if find_chromium() is None:
        reason = "no Chromium is installed (Debian package: chromium)"
        if os.environ.get("DESKFORK_REQUIRED_PROVIDERS"):  # as `make test` sets it: nothing may be left out
            pytest.fail(reason)
        pytest.skip(reason)
    with chromium(tmp_path_factory.mktemp("browser")) as page:
        page.resize(1280, 800)
        yield page


@pytest.fixture
def page(browser: Page) -> Iterator[Page]:
    """The browser, which must have had nothing to complain of afterwards."""
    yield browser
    found = browser.run("window.violations ?? []"), list(browser.complaints), list(browser.dialogs)
    browser.open("about:blank")
    browser.complaints.clear()
    assert found == ([], [], [])
