"""QEMU as a child process of ours."""

import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import IO, Literal

from deskfork.core.errors import ConfigError, SandboxError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.accel import Acceleration, probe_acceleration
from deskfork.sandbox.launcher import MachineProcess
from deskfork.sandbox.machine import GUEST_PORTS
from deskfork.transport.endpoint import TcpEndpoint

BINARY = "qemu-system-x86_64"
OLDEST_MAJOR = 9
"""`migrate file:` with x-ignore-shared, and read-only private memory files, need QEMU 9."""
_FORWARD = re.compile(r"TCP\[HOST_FORWARD\]\s+\d+\s+(\S+)\s+(\d+)\s+\S+\s+(\d+)")


class QemuProcess:
    """A QEMU child process."""

    def __init__(self, child: subprocess.Popen[bytes], stderr: IO[bytes]) -> None:
        """Wrap a started child whose standard error goes to the file `stderr`."""
        self._child = child
        self._stderr = stderr
        self._said = ""
        self.pid = child.pid

    def is_alive(self) -> bool:
        """Whether QEMU still runs."""
        return self._child.poll() is None

    def endpoints(self, forwards: str) -> dict[str, TcpEndpoint]:
        """Read the ports that QEMU chose out of its `info usernet`.

        Raises:
            SandboxError: A service is not forwarded.
        """
        by_guest_port = {int(guest): TcpEndpoint(host, int(port)) for host, port, guest in _FORWARD.findall(forwards)}
        missing = [name for name, port in GUEST_PORTS.items() if port not in by_guest_port]
        if missing:
            raise SandboxError(f"QEMU {self.pid} forwards no port for {', '.join(missing)}")
        return {name: by_guest_port[port] for name, port in GUEST_PORTS.items()}

    def complaint(self) -> str:
        """Return the end of what QEMU wrote to its standard error."""
        if not self._stderr.closed:
            self._stderr.seek(0)
            self._said = self._stderr.read().decode(errors="replace").strip()[-500:]
        return self._said

    def kill(self) -> None:
        """End QEMU and wait until it is gone."""
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()
        self.complaint()
        self._stderr.close()


class QemuLauncher:
    """Starts QEMU from the host's own packages."""

    name: Literal["qemu"] = "qemu"

    def __init__(self, cache_dir: Path) -> None:
        """Remember where verdicts are cached; nothing is started."""
        self._cache_dir = cache_dir

    @cached_property
    def _version(self) -> str:
        path = shutil.which(BINARY)
        if path is None:
            raise ConfigError(f"{BINARY} is not installed: `make setup` installs it (Debian package: qemu-system-x86)")
        return checked_version(
            subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
        )

    def qemu_version(self) -> str:
        """Return the host's QEMU version.

        Raises:
            ConfigError: It is missing or too old.
        """
        return self._version

    def acceleration(self) -> Acceleration:
        """Return KVM if a guest was shown to run under it, else TCG, and why."""
        return probe_acceleration([BINARY], self._cache_dir, qemu_version=self.qemu_version())

    def forwards(self) -> tuple[tuple[str, int, int], ...]:
        """Let QEMU choose free ports on loopback: none can be taken between choosing and binding."""
        return tuple(("127.0.0.1", 0, port) for port in GUEST_PORTS.values())

    def start(
        self, name: str, arguments: Sequence[str], *, directory: Path, readable: Sequence[Path]
    ) -> MachineProcess:
        """Start QEMU as a child, in a session of its own so that the terminal's signals do not reach it.

        Raises:
            SandboxError: It could not be started.
        """
        del readable
        # Closed with its QemuProcess: what QEMU said is read when it has died.
        stderr = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115
        try:
            child = subprocess.Popen(
                [BINARY, "-name", f"deskfork-{name}", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxError(f"{name}: {BINARY} could not be started: {error}") from error
        return QemuProcess(child, stderr)


def checked_version(printed: str) -> str:
    """Return the version in what `qemu-system-x86_64 --version` printed.

    Raises:
        ConfigError: It is older than deskfork needs, or nothing that QEMU prints.
    """
    found = re.search(r"QEMU emulator version ((\d+)\.\S+(?: \([^)]*\))?)", printed)
    if found is None or int(found[2]) < OLDEST_MAJOR:
        version = found[1] if found else "unknown"
        raise ConfigError(
            f"QEMU {version} is too old, deskfork needs {OLDEST_MAJOR}.0 or newer: on Debian 12 `make setup` takes it "
            "from bookworm-backports"
        )
    return found[1]


def end_by_name(name: str) -> None:
    """Kill the QEMU that runs sandbox `name`, whoever started it, and wait until it is gone.

    It is found by its command line, so that neither a process id used again nor a record never written matters.

    Raises:
        SandboxError: It did not end.
    """
    deadline = Deadline.after(10.0)
    for pid in _pids_named(f"deskfork-{name}"):
        with suppress(ProcessLookupError):
            _kill(pid, deadline)
    if not wait_until(lambda: not _pids_named(f"deskfork-{name}"), deadline):
        raise SandboxError(f"{name}: its QEMU could not be killed")


def _kill(pid: int, deadline: Deadline) -> None:
    handle = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        # A process loses its command line, by which it is found, a moment before it is gone.
        end = select.poll()
        end.register(handle, select.POLLIN)
        end.poll(1000 * deadline.remaining_s)
    finally:
        os.close(handle)


def _pids_named(qemu_name: str) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[1:3] == [b"-name", qemu_name.encode()]:
                found.append(int(process.name))
    return found
