"""A connection to the accessibility bus on which all requests are sent before the first reply is read."""

import os
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from deskfork_guest.accessibility.wire import MESSAGE_HEAD, REPLY, Malformed, make_call, message_size, reply_serial

MAX_MESSAGE_BYTES = 8 << 20
"""Longer messages are dropped as they come in: who floods the bus costs us time up to our deadline, but no memory."""
MAX_KEPT_BYTES = 32 << 20
"""What the replies to one batch of calls may have in all; later ones count as failed."""
_CHUNK = 1 << 16
_BUS = "org.freedesktop.DBus"
Call = Callable[[int, str], bytes]
"""A method call that `make_call` prepared."""


class BusUnavailable(Exception):
    """The accessibility bus does not answer, or not in D-Bus's language."""


class Bus:
    """A member of one message bus. Not for several threads at once."""

    def __init__(self, path: Path, deadline: float) -> None:
        """Join the bus at the socket `path`.

        Args:
            path: The socket.
            deadline: When to give up, on `time.monotonic`.

        Raises:
            BusUnavailable: Nobody lets us in there in time.
        """
        self._socket = socket.socket(socket.AF_UNIX)
        self._buffer = b""
        self._serial = 0
        self._unwanted = 0
        self._is_open = True
        try:
            self._socket.settimeout(max(0.01, deadline - time.monotonic()))
            self._socket.connect(str(path))
            self._socket.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
            answer = self._socket.recv(1024)
            if not answer.startswith(b"OK "):
                raise BusUnavailable(f"{path}: {answer[:100]!r}")
            self._socket.sendall(b"BEGIN\r\n")
            self._socket.setblocking(False)
            if self.ask_all([(make_call(_BUS, _BUS, "Hello"), "/org/freedesktop/DBus")], deadline)[0] in (None, b""):
                raise BusUnavailable(f"{path}: no answer to Hello")
        except OSError as exc:
            self.close()
            raise BusUnavailable(f"{path}: {exc}") from exc
        except BusUnavailable:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        """Whether it has not been closed, by us or by the bus."""
        return self._is_open

    def ask_all(self, calls: Sequence[tuple[Call, str]], deadline: float) -> list[bytes | None]:
        """Make all `calls` at once.

        Args:
            calls: What `make_call` prepared, and the object that it is for.
            deadline: When to stop waiting for replies, on `time.monotonic`.

        Returns:
            For each call the body of its reply, empty where that was an error; None where nothing came in time.

        Raises:
            BusUnavailable: The connection ended, or what came over it is no D-Bus.
        """
        first = self._serial + 1
        self._serial += len(calls)
        unsent = memoryview(b"".join(call(first + n, path) for n, (call, path) in enumerate(calls)))
        replies: list[bytes | None] = [None] * len(calls)
        missing = len(calls)
        kept = 0
        try:
            while missing and time.monotonic() < deadline:
                unsent = self._exchange(unsent, deadline)
                for message, start in self._messages():
                    n = reply_serial(message) - first
                    if 0 <= n < len(calls):
                        missing -= 1
                        kept += len(message)
                        replies[n] = message[start:] if message[1] == REPLY and kept <= MAX_KEPT_BYTES else b""
        except (OSError, Malformed) as exc:
            self.close()
            raise BusUnavailable(f"the accessibility bus: {exc}") from exc
        if unsent:
            # Half a message is on its way: nothing can follow it.
            self.close()
        return replies

    def rest(self, until: float) -> None:
        """Ask nothing until `until`, on `time.monotonic`; what comes in the meantime is dropped.

        Raises:
            BusUnavailable: The connection ended, or what came over it is no D-Bus.
        """
        try:
            while time.monotonic() < until:
                self._exchange(memoryview(b""), until)
                for _ in self._messages():
                    continue
        except (OSError, Malformed) as exc:
            self.close()
            raise BusUnavailable(f"the accessibility bus: {exc}") from exc

    def close(self) -> None:
        """Leave the bus."""
        self._is_open = False
        self._socket.close()

    def _exchange(self, unsent: memoryview, deadline: float) -> memoryview:
        """Send and receive what can be at the moment; wait for either if neither can."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | (select.POLLOUT if unsent else 0))
        ready = sum(event for _, event in poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
        if ready & select.POLLOUT:
            unsent = unsent[self._socket.send(unsent[:_CHUNK]) :]
        if ready & ~select.POLLOUT:
            chunk = self._socket.recv(_CHUNK)
            if not chunk:
                raise ConnectionError("it closed the connection")
            self._buffer += chunk[self._unwanted :]
            self._unwanted = max(0, self._unwanted - len(chunk))
        return unsent

    def _messages(self) -> Iterator[tuple[bytes, int]]:
        """Take the messages that have arrived whole from the buffer, each with where its body begins."""
        buffer, at = self._buffer, 0
        while len(buffer) - at >= MESSAGE_HEAD:
            size, start = message_size(buffer, at)
            if size > MAX_MESSAGE_BYTES:
                self._unwanted = max(0, size - (len(buffer) - at))
                at = min(len(buffer), at + size)
                continue
            if len(buffer) - at < size:
                break
            yield buffer[at : at + size], start
            at += size
        self._buffer = buffer[at:]
