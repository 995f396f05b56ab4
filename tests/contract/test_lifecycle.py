"""Guards forks, checkpoints and branches: state that leaks between sandboxes, and sandboxes that outlive us."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

import pytest

from deskfork.core.config import cache_dir
from deskfork.core.errors import ConfigError, GuestFileError, SandboxError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import GUEST_DESKTOP, Sandbox, SandboxProvider
from left_behind import left_of

SOON_S = 60.0
NOTE = GUEST_DESKTOP / "note.txt"
OWNER = """
import sys
from pathlib import Path
from deskfork.sandbox.open import open_provider
provider = open_provider(sys.argv[1], Path(sys.argv[2]))
sandbox = provider.fork("desktop")
sandbox.run_cell("import subprocess; child = subprocess.Popen(['sleep', '600'])", timeout_s=60)
print(sandbox.facts.id, flush=True)
sys.stdin.read()
"""


def printed(sandbox: Sandbox, expression: str) -> str:
    return sandbox.run_cell(f"print({expression})", timeout_s=SOON_S).stdout.strip()


def note(sandbox: Sandbox, folder: Path) -> str:
    target = folder / f"note-{time.monotonic_ns()}"
    sandbox.get(NOTE, target)
    return target.read_text()


def test_the_facts_are_those_of_the_template(provider: SandboxProvider, sandbox: Sandbox) -> None:
    facts, template = sandbox.facts, provider.describe("desktop")
    assert facts.provider == provider.name
    assert (facts.template, facts.template_digest) == ("desktop", template.digest)
    assert facts.opened == frozenset()
    assert facts.network is False
    assert facts.acceleration == template.acceleration
    assert sandbox.is_alive()


def test_the_screenshot_has_the_screens_size(sandbox: Sandbox) -> None:
    image = sandbox.screenshot()
    assert image.size == (sandbox.facts.width_px, sandbox.facts.height_px)
    assert image.mode == "RGB"
    assert len(image.getcolors(maxcolors=1 << 24) or []) > 1, "the screen is blank"


def test_the_desktop_tells_its_size(sandbox: Sandbox) -> None:
    desktop = sandbox.desktop()
    assert (desktop.width_px, desktop.height_px) == (sandbox.facts.width_px, sandbox.facts.height_px)


def test_an_unknown_template_is_the_callers_mistake(provider: SandboxProvider) -> None:
    with pytest.raises(ConfigError, match="no-such-template"):
        provider.fork("no-such-template")
    with pytest.raises(ConfigError, match="no-such-template"):
        provider.describe("no-such-template")


def test_two_forks_share_nothing(provider: SandboxProvider, sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.run_cell("only_here = 1", timeout_s=SOON_S)
    sandbox.put(b"mine", NOTE)
    with provider.fork("jupyter") as other:
        assert other.facts.id != sandbox.facts.id
        assert {"jupyterlab", "browser"} <= other.facts.opened
        assert printed(other, "'only_here' in globals()") == "False"
        with pytest.raises(GuestFileError):
            other.get(NOTE, tmp_path / "note")
        other.put(b"theirs", NOTE)
        if provider.name != "fake":
            ask = ["cat", "/run/deskfork/token", "/etc/machine-id"]
            answers = [one.exec(ask, as_root=True, timeout_s=SOON_S) for one in (sandbox, other)]
            assert [answer.exit_code for answer in answers] == [0, 0]
            assert not set(answers[0].stdout.split()) & set(answers[1].stdout.split())
    assert note(sandbox, tmp_path) == "mine"


def test_restore_brings_back_files_and_variables_and_branches_diverge(
    own_sandbox: Sandbox, sandbox: Sandbox, tmp_path: Path
) -> None:
    own_sandbox.run_cell("value = 1\nlog = [value]", timeout_s=SOON_S)
    own_sandbox.put(b"first", NOTE)
    taken = own_sandbox.checkpoint()
    assert taken.bytes_written > 0
    assert taken.duration_s > 0
    assert printed(own_sandbox, "value") == "1", "it does not go on after a checkpoint"

    with pytest.raises(ConfigError):
        sandbox.restore(taken)

    own_sandbox.run_cell("value = 2; log.append(2)", timeout_s=SOON_S)
    own_sandbox.put(b"second", NOTE)
    own_sandbox.put(b"more", GUEST_DESKTOP / "late.txt")
    for _attempt in range(2):
        own_sandbox.restore(taken)
        assert printed(own_sandbox, "value, log") == "1 [1]"
        assert note(own_sandbox, tmp_path) == "first"
        with pytest.raises(GuestFileError):
            own_sandbox.get(GUEST_DESKTOP / "late.txt", tmp_path / "late")
        assert abs(float(printed(own_sandbox, "__import__('time').time()")) - time.time()) < 3
        own_sandbox.run_cell("value = 3", timeout_s=SOON_S)

    with ExitStack() as opened:
        branches = [opened.enter_context(branch) for branch in own_sandbox.branch(2)]
        assert len({own_sandbox.facts.id, *(branch.facts.id for branch in branches)}) == 3
        for number, branch in enumerate(branches):
            assert printed(branch, "value") == "3"
            branch.run_cell(f"value = 'branch {number}'", timeout_s=SOON_S)
            branch.put(f"branch {number}".encode(), NOTE)
        own_sandbox.close()
        for number, branch in enumerate(branches):
            assert printed(branch, "value") == f"branch {number}"
            assert note(branch, tmp_path) == f"branch {number}"


def test_a_closed_sandbox_refuses_everything_and_leaves_nothing(provider: SandboxProvider, tmp_path: Path) -> None:
    closed = provider.fork("desktop")
    name = closed.facts.id
    closed.exec(["bash", "-c", "sleep 600 &"], timeout_s=30)
    taken = closed.checkpoint()
    closed.close()
    closed.close()
    assert not closed.is_alive()
    refused: list[Callable[[], object]] = [
        lambda: closed.exec(["true"], timeout_s=5),
        lambda: closed.put(b"", PurePosixPath("/tmp/x")),
        lambda: closed.get(PurePosixPath("/tmp/x"), tmp_path / "x"),
        lambda: closed.run_cell("1", timeout_s=5),
        closed.screenshot,
        closed.desktop,
        closed.checkpoint,
        lambda: closed.restore(taken),
        lambda: closed.branch(1),
    ]
    for operation in refused:
        with pytest.raises(SandboxError):
            operation()
    assert left_of(name) == []


def test_a_sandbox_dies_with_its_owner(provider: SandboxProvider) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, provider.name, str(cache_dir())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        try:
            assert owner.stdout is not None
            name = owner.stdout.readline().strip()
            assert name
            assert left_of(name)
        finally:
            owner.send_signal(signal.SIGKILL)
            owner.wait(20)
    assert wait_until(lambda: not left_of(name), Deadline.after(30)), left_of(name)
