"""Guards templates that live sandboxes read from: removed or replaced under them, their memory would change."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deskfork.core.errors import SandboxError
from deskfork.sandbox.templates.use import is_used, retire, use

_HOLD = """
import sys
from pathlib import Path
from deskfork.sandbox.templates.use import use
use(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def template(tmp_path: Path) -> Path:
    directory = tmp_path / "desktop-01"
    directory.mkdir()
    (directory / "memory").write_bytes(b"m")
    return directory


def test_a_used_template_is_not_retired_until_its_last_user_lets_go(template: Path) -> None:
    first, second = use(template), use(template)
    assert is_used(template)
    assert not retire(template)
    os.close(first)
    assert not retire(template)
    os.close(second)
    assert not is_used(template)
    assert retire(template)
    assert list(template.parent.iterdir()) == []


def test_a_user_that_is_killed_uses_it_no_more(template: Path) -> None:
    command = [sys.executable, "-c", _HOLD, str(template)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert not retire(template)
        other.send_signal(signal.SIGKILL)
        other.wait(20)
        assert retire(template)


def test_a_template_that_is_gone_cannot_be_used(template: Path) -> None:
    assert retire(template)
    assert retire(template)
    with pytest.raises(SandboxError, match="not there any more"):
        use(template)


def test_using_it_says_when_it_was_last_used(template: Path) -> None:
    os.utime(template, (0, 0))
    os.close(use(template))
    assert template.stat().st_mtime > 1_000_000


def test_looking_whether_it_is_used_is_no_use(template: Path) -> None:
    os.utime(template, (0, 0))
    assert not is_used(template)
    assert template.stat().st_mtime == 0
    assert retire(template)
