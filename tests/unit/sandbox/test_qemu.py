"""Guards QEMU as a child process: what it said must outlive it, and it must not outlive its order to end."""

from pathlib import Path

import pytest
from abandoned import is_running

from deskfork.core.errors import ConfigError, SandboxError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.launcher import MachineProcess
from deskfork.sandbox.providers.qemu import QemuLauncher, checked_version

NOTHING = ["-machine", "none", "-nodefaults", "-display", "none"]
USERNET = """Hub 0 (#net0):
  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ
  TCP[HOST_FORWARD]  14       127.0.0.1 41001       10.0.2.15 60001     0     0
  TCP[HOST_FORWARD]  13       127.0.0.1 41000       10.0.2.15 60000     0     0
  TCP[HOST_FORWARD]  12       127.0.0.1 40022       10.0.2.15    22     0     0
  TCP[ESTABLISHED]   15       127.0.0.1 40022       10.0.2.15    22     0     0
"""


def start(directory: Path, *arguments: str) -> MachineProcess:
    launcher = QemuLauncher(directory)
    return launcher.start("0123abcd", [*NOTHING, *arguments], directory=directory, readable=[])


def test_it_runs_until_it_is_killed(tmp_path: Path) -> None:
    process = start(tmp_path)
    assert process.is_alive()
    process.kill()
    process.kill()
    assert not process.is_alive()
    assert not is_running(process.pid)
    assert process.complaint() == ""


def test_what_it_said_is_known_before_and_after_it_is_cleaned_up(tmp_path: Path) -> None:
    process = start(tmp_path, "-no-such-option")
    assert wait_until(lambda: not process.is_alive(), Deadline.after(10))
    assert "no-such-option" in process.complaint()
    process.kill()
    assert "no-such-option" in process.complaint()
    assert list(tmp_path.iterdir()) == []


def test_ports_are_those_that_qemu_chose(tmp_path: Path) -> None:
    process = start(tmp_path)
    try:
        found = process.endpoints(USERNET)
        assert {name: (at.host, at.port) for name, at in found.items()} == {
            "ssh": ("127.0.0.1", 40022),
            "observer": ("127.0.0.1", 41000),
            "kernel": ("127.0.0.1", 41001),
        }
        with pytest.raises(SandboxError, match="kernel"):
            process.endpoints("\n".join(USERNET.splitlines()[3:]))
    finally:
        process.kill()


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)\nCopyright", "10.0.2 (Debian 1:10.0.2+ds-2)"),
        ("QEMU emulator version 9.0.0\n", "9.0.0"),
    ],
)
def test_a_version_that_is_new_enough_is_told_whole(printed: str, version: str) -> None:
    assert checked_version(printed) == version


@pytest.mark.parametrize("printed", ["", "QEMU emulator version 7.2.15 (Debian 1:7.2)", "no QEMU at all"])
def test_an_older_version_is_refused(printed: str) -> None:
    with pytest.raises(ConfigError, match="too old"):
        checked_version(printed)
