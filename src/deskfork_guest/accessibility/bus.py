"""A connection to the accessibility bus on which all requests are sent before the first reply is read."""

import os
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from deskfork_guest.accessibility.wire import MESSAGE_HEAD, REPLY, Malformed, make_call, message_size, reply_serial

MAX_MESSAGE_BYTES = 8 << 20
"""Longer messages are dropped as they come in: who floods the bus costs us time up to our deadline, but no memory."""
MAX_KEPT_BYTES = 32 << 20
"""What the replies to one batch of calls may have in all; later ones count as failed."""
_CHUNK = 1 << 16
_BUS = "org.freedesktop.DBus"
T = TypeVar("T")
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
        replies: list[bytes | None] = [None] * len(calls)
        kept = 0

        def keep(number: int, reply: bytes) -> tuple[()]:
            nonlocal kept
            kept += len(reply)
            replies[number] = reply if kept <= MAX_KEPT_BYTES else b""
            return ()

        questions = [(call, path, number) for number, (call, path) in enumerate(calls)]
        self.converse(questions, keep, deadline, deadline - time.monotonic())
        return replies

    def converse(
        self,
        questions: Sequence[tuple[Call, str, T]],
        answer: Callable[[T, bytes], Sequence[tuple[Call, str, T]]],
        deadline: float,
        patience_s: float,
    ) -> list[T]:
        """Make calls, and those that their replies lead to, until all are answered; none waits for another's reply.

        Args:
            questions: Calls, the objects that they are for, and what `answer` knows each by.
            answer: Takes the body of a reply, empty for an error, and returns further calls.
            deadline: When to stop, on `time.monotonic`.
            patience_s: For how long no reply at all may come.

        Returns:
            What the calls are known by that were not answered.

        Raises:
            BusUnavailable: The connection ended, or what came over it is no D-Bus.
        """
        waiting: dict[int, T] = {}
        unsent = self._packed(questions, waiting)
        further: list[tuple[Call, str, T]] = []
        until = min(deadline, time.monotonic() + patience_s)
        try:
            while waiting and time.monotonic() < until:
                unsent, has_heard = self._exchange(unsent, time.monotonic() if further else until)
                if not has_heard:
                    # Not with each reply: to wake who answers for a few calls costs more than the calls.
                    unsent = memoryview(bytes(unsent) + self._packed(further, waiting))
                    further = []
                    continue
                for message, start in self._messages():
                    serial = reply_serial(message)
                    if serial in waiting:
                        further += answer(waiting.pop(serial), message[start:] if message[1] == REPLY else b"")
                        until = min(deadline, time.monotonic() + patience_s)
                if not waiting:
                    unsent, further = self._packed(further, waiting), []
        except (OSError, Malformed) as exc:
            self.close()
            raise BusUnavailable(f"the accessibility bus: {exc}") from exc
        if unsent:
            # Half a message is on its way: nothing can follow it.
            self.close()
        return list(waiting.values())

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

    def _packed(self, questions: Sequence[tuple[Call, str, T]], waiting: dict[int, T]) -> memoryview:
        """Marshal calls, and note under their serial numbers what they are known by."""
        messages = []
        for call, path, known_by in questions:
            self._serial += 1
            waiting[self._serial] = known_by
            messages.append(call(self._serial, path))
        return memoryview(b"".join(messages))

    def _exchange(self, unsent: memoryview, until: float) -> tuple[memoryview, bool]:
        """Send and receive what can be at the moment; wait for either until then. Return what is left to be sent."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | (select.POLLOUT if unsent else 0))
        ready = sum(event for _, event in poll.poll(max(0.0, until - time.monotonic()) * 1000))
        if ready & select.POLLOUT:
            unsent = unsent[self._socket.send(unsent[:_CHUNK]) :]
        if not ready & ~select.POLLOUT:
            return unsent, False
        chunk = self._socket.recv(_CHUNK)
        if not chunk:
            raise ConnectionError("it closed the connection")
        self._buffer += chunk[self._unwanted :]
        self._unwanted = max(0, self._unwanted - len(chunk))
        return unsent, True

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
