"""What the fixtures of these tests hand out: peers that answer what a test tells them to, and real services."""

import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from deskfork.core.errors import TransportError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.transport.endpoint import TcpEndpoint, open_socket

Talk = Callable[[socket.socket], None]


def free_endpoint() -> TcpEndpoint:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return TcpEndpoint("127.0.0.1", probe.getsockname()[1])


def wait_for_port(endpoint: TcpEndpoint, timeout_s: float = 30.0) -> None:
    def probe() -> bool:
        with suppress(TransportError):
            open_socket(endpoint, Deadline.after(1.0)).close()
            return True
        return False

    assert wait_until(probe, Deadline.after(timeout_s)), f"nothing listens at {endpoint}"


def processes_mentioning(text: str) -> list[int]:
    """Return the processes with `text` in one of their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if text.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


@dataclass
class Peer:
    """A server that handles each connection by calling `talk` on a thread."""

    talk: Talk
    address: tuple[str, int] | str = ("127.0.0.1", 0)
    connections: int = 0
    _open: list[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        family = socket.AF_INET if isinstance(self.address, tuple) else socket.AF_UNIX
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.bind(self.address)
        self.listener.listen()
        self._accepting = threading.Thread(target=self._serve, daemon=True)
        self._accepting.start()

    @property
    def endpoint(self) -> TcpEndpoint:
        return TcpEndpoint(*self.listener.getsockname())

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                accepted, _ = self.listener.accept()
                self.connections += 1
                self._open.append(accepted)
                threading.Thread(target=self._talk, args=(accepted,), daemon=True).start()

    def _talk(self, accepted: socket.socket) -> None:
        with suppress(OSError):
            self.talk(accepted)

    def close(self) -> None:
        # close() alone does not wake a thread that waits in accept().
        _end(self.listener)
        # What it was just accepting is in the list only when it has ended.
        self._accepting.join(10)
        for each in self._open:
            _end(each)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


StartPeer = Callable[..., Peer]


@dataclass
class Gateway:
    """A running kernel gateway."""

    endpoint: TcpEndpoint
    token: str
    process: "subprocess.Popen[bytes]"


@dataclass
class Sshd:
    """A running sshd that takes `private_key` for root."""

    endpoint: TcpEndpoint
    private_key: Path
    host_key: str
    process: "subprocess.Popen[bytes]"
