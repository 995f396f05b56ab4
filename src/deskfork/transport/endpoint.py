"""Where a guest's service answers, and sockets on which no wait outlasts its deadline."""

import io
import socket
from dataclasses import dataclass

from deskfork.core.errors import TransportError
from deskfork.core.waiting import Deadline

_CHUNK_BYTES = 65536


@dataclass(frozen=True)
class TcpEndpoint:
    """A TCP port of this host behind which one guest service listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class DeadlineSocket:
    """A connected stream socket on which reading and writing together end at `deadline`.

    It offers what `http.client` and websocket-client need of a socket. A peer that sends one byte at a time cannot
    stretch the wait, which a plain socket timeout would allow.

    Raises:
        TimeoutError: From every method that waits, once `deadline` has passed.
        OSError: The connection broke.
    """

    def __init__(self, raw: socket.socket, deadline: Deadline) -> None:
        self.deadline = deadline
        self.received_bytes = 0
        """How much has come in so far; whether it grows tells a peer that is busy from one that is silent."""
        self._raw = raw
        self._is_tcp = raw.family in (socket.AF_INET, socket.AF_INET6)
        self._buffer = b""
        self._position = 0

    def recv(self, size: int) -> bytes:
        """Return 1 to `size` bytes, or none if the peer has closed."""
        if self._position == len(self._buffer):
            if self._is_tcp:
                # Linux forgets this option by itself; without it a cell took 48 ms instead of 6 (delayed ACKs).
                self._raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            self._arm()
            self._buffer, self._position = self._raw.recv(_CHUNK_BYTES), 0
            self.received_bytes += len(self._buffer)
        taken = self._buffer[self._position : self._position + size]
        self._position += len(taken)
        return taken

    def sendall(self, payload: bytes) -> None:
        """Send all of `payload`."""
        self._arm()
        self._raw.sendall(payload)

    def is_readable(self) -> bool:
        """Whether `recv` would return at once."""
        if self._position < len(self._buffer):
            return True
        self._raw.setblocking(False)
        try:
            self._raw.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        return True

    def makefile(self, mode: str = "rb") -> io.BufferedReader:
        """Return a buffered reader of this socket, as `http.client` asks for it."""
        if mode != "rb":
            raise ValueError(f"a DeadlineSocket is read as rb, not {mode}")
        return io.BufferedReader(_SocketReader(self), _CHUNK_BYTES)

    def close(self) -> None:
        """Close the connection."""
        self._raw.close()

    def _arm(self) -> None:
        remaining_s = self.deadline.remaining_s
        if remaining_s <= 0:
            raise TimeoutError(f"no time left of {self.deadline.timeout_s:g} s")
        self._raw.settimeout(remaining_s)


class _SocketReader(io.RawIOBase):
    def __init__(self, source: DeadlineSocket) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, target: "memoryview | bytearray") -> int:  # type: ignore[override]
        chunk = self._source.recv(len(target))
        target[: len(chunk)] = chunk
        return len(chunk)


def open_socket(endpoint: TcpEndpoint, deadline: Deadline) -> socket.socket:
    """Connect to `endpoint` with Nagle's algorithm off.

    Raises:
        TransportError: Nothing listens there, or it did not answer in time.
    """
    try:
        connected = socket.create_connection((endpoint.host, endpoint.port), max(deadline.remaining_s, 0.001))
    except OSError as exc:
        raise TransportError(f"connect to {endpoint}: {exc}") from exc
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def open_deadline_socket(endpoint: TcpEndpoint, deadline: Deadline) -> DeadlineSocket:
    """Connect to `endpoint` like `open_socket`, and hold the connection to `deadline` until it is given a new one."""
    return DeadlineSocket(open_socket(endpoint, deadline), deadline)
