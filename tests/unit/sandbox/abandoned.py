"""A process that owns a sandbox folder and a real QEMU (of an empty machine), to be killed in tests."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deskfork.sandbox.providers.qemu import end_by_name

_OWNER = """
import subprocess
import sys
from pathlib import Path
from deskfork.sandbox.live import claim
from deskfork.sandbox.reaper import Reaper
cache = Path(sys.argv[1])
reaper = Reaper(cache) if sys.argv[2] == "with-reaper" else None
own = claim(cache, provider="qemu", kind="sandbox", template="desktop")
flags = ["-machine", "none", "-nodefaults", "-display", "none", "-monitor", "none", "-serial", "none"]
qemu = subprocess.Popen(
    ["qemu-system-x86_64", "-name", f"deskfork-{own.record.id}", *flags],
    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
)
own.update(qemu_pid=qemu.pid)
print(own.record.id, qemu.pid, reaper._child.pid if reaper else 0, flush=True)
if sys.stdin.readline() == "dismiss\\n":
    reaper.dismiss()
"""


@dataclass(frozen=True)
class Owner:
    """The process, and what it has."""

    process: subprocess.Popen[str]
    sandbox_id: str
    qemu_pid: int
    reaper_pid: int

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)

    def end(self, last_word: str) -> None:
        """Let it end by itself."""
        self.process.communicate(last_word, timeout=20)


@contextmanager
def owning(cache: Path, *, with_reaper: bool = False) -> Iterator[Owner]:
    """Start an owner; afterwards it and its QEMU are gone."""
    command = [sys.executable, "-c", _OWNER, str(cache), "with-reaper" if with_reaper else "alone"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        sandbox_id, qemu_pid, reaper_pid = process.stdout.readline().split()
        try:
            yield Owner(process, sandbox_id, int(qemu_pid), int(reaper_pid))
        finally:
            process.kill()
            end_by_name(sandbox_id)


def is_running(pid: int) -> bool:
    """Whether there is such a process, zombies not counted."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
