"""A WebSocket to a service in a hostile guest; the only module that imports websocket-client.

The handshake is our own: websocket-client's follows redirects to wherever the guest points, keeps the guest's cookies
for the next guest on the same host, and reads headers without a bound.
"""

import base64
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from websocket import ABNF, WebSocketConnectionClosedException, WebSocketException, frame_buffer

from deskfork.core.errors import TransportError
from deskfork.core.waiting import Deadline
from deskfork.transport.endpoint import DeadlineSocket, TcpEndpoint, open_deadline_socket
from deskfork.transport.http import request_head

MAX_FRAME_BYTES = 32 * 1024 * 1024
"""A longer message is cut to its first `CUT_BYTES`; the rest of it is read and dropped."""
CUT_BYTES = 1024 * 1024
_PONG_TIMEOUT_S = 1.0
_MAX_HANDSHAKE_BYTES = 16 * 1024
_ACCEPT_SALT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@dataclass(frozen=True)
class Received:
    """One WebSocket message."""

    payload: bytes
    is_text: bool
    is_cut: bool = False
    """The message was longer than MAX_FRAME_BYTES; this is its beginning."""


class DeadlinePassed(TransportError):
    """Nothing more can be received before the deadline; the connection is still good."""


class ChannelClosed(TransportError):
    """The peer closed, or broke the protocol; the connection is gone."""


class _BoundedFrames(frame_buffer):
    """Parses frames; of a frame that is too long only the beginning is kept. A timeout within a frame loses nothing."""

    def __init__(self, source: DeadlineSocket) -> None:
        super().__init__(self._read, True)
        self._source = source
        self._kept: bytes | None = None
        self._missing = 0
        self.is_cut = False

    def recv_strict(self, bufsize: int) -> bytes:
        if bufsize <= MAX_FRAME_BYTES:
            return super().recv_strict(bufsize)
        if self._kept is None:
            self._kept, self._missing = super().recv_strict(CUT_BYTES), bufsize - CUT_BYTES
        while self._missing > 0:
            self._missing -= len(self._read(min(self._missing, 65536)))
        kept, self._kept, self.is_cut = self._kept, None, True
        return kept

    def _read(self, size: int) -> bytes:
        chunk = self._source.recv(size)
        if not chunk:
            raise WebSocketConnectionClosedException("the peer closed the connection")
        return chunk


class WebSocketChannel:
    """A connected WebSocket, used by one thread at a time."""

    def __init__(self, source: DeadlineSocket, name: str, subprotocol: str | None) -> None:
        self.subprotocol = subprotocol
        """What the server chose of the subprotocols offered."""
        self._socket = source
        self._name = name
        self._frames = _BoundedFrames(source)
        self._parts = bytearray()
        self._opcode = 0
        self._is_cut = False

    @classmethod
    def connect(
        cls, endpoint: TcpEndpoint, path: str, headers: Mapping[str, str], deadline: Deadline, *, subprotocol: str
    ) -> Self:
        """Open a WebSocket at `path`, offering `subprotocol`.

        Raises:
            TransportError: Nothing listens there, or it refused.
        """
        name = f"ws://{endpoint}{path.partition('?')[0]}"
        source = open_deadline_socket(endpoint, deadline)
        try:
            chosen = _handshake(source, endpoint, path, {**headers, "Sec-WebSocket-Protocol": subprotocol})
        except (OSError, ValueError) as exc:
            source.close()
            raise TransportError(f"open {name}: {type(exc).__name__}: {exc}") from exc
        return cls(source, name, chosen)

    def send(self, payload: bytes, deadline: Deadline, *, is_text: bool = False) -> None:
        """Send one message.

        Raises:
            ChannelClosed: It could not be sent whole.
        """
        self._socket.deadline = deadline
        self._send(payload, ABNF.OPCODE_TEXT if is_text else ABNF.OPCODE_BINARY)

    def receive(self, deadline: Deadline) -> Received:
        """Wait for the next message; pings are answered meanwhile.

        Raises:
            DeadlinePassed: There was none; waiting may go on with a later deadline.
            ChannelClosed: The connection is gone.
        """
        self._socket.deadline = deadline
        try:
            while not deadline.has_passed:
                if (message := self._next_frame()) is not None:
                    return message
        except TimeoutError:
            pass
        except (OSError, WebSocketException) as exc:
            self.close()
            raise ChannelClosed(f"{self._name}: {exc}") from exc
        raise DeadlinePassed(f"{self._name}: no message in {deadline.timeout_s:g} s")

    @property
    def received_bytes(self) -> int:
        """How much has come in so far, complete messages or not."""
        return self._socket.received_bytes

    def is_readable(self) -> bool:
        """Whether there is something to receive, be it the news that the peer has closed."""
        try:
            return self._socket.is_readable()
        except OSError:
            return True

    def close(self) -> None:
        """Close the connection without waiting for the peer's consent."""
        self._socket.close()

    def _next_frame(self) -> Received | None:
        frame = self._frames.recv_frame()
        payload = bytes(frame.data) if isinstance(frame.data, (bytes, bytearray)) else frame.data.encode()
        frame_is_cut, self._frames.is_cut = self._frames.is_cut, False
        if frame.opcode == ABNF.OPCODE_CLOSE:
            raise WebSocketConnectionClosedException("the peer closed the connection")
        if frame.opcode in (ABNF.OPCODE_PING, ABNF.OPCODE_PONG):
            if len(payload) > 125:
                raise WebSocketException("control frame too long")
            if frame.opcode == ABNF.OPCODE_PING:
                self._answer_ping(payload)
            return None
        if (frame.opcode == ABNF.OPCODE_CONT) == (self._opcode == 0):
            raise WebSocketException("fragments out of order")
        self._opcode = frame.opcode or self._opcode
        self._is_cut |= frame_is_cut or len(self._parts) + len(payload) > MAX_FRAME_BYTES
        if not self._is_cut or len(self._parts) < CUT_BYTES:
            self._parts += payload
        return self._finish() if frame.fin else None

    def _answer_ping(self, payload: bytes) -> None:
        # A little time of its own: the connection must not be lost because a ping came at the end of a wait.
        waiting_until = self._socket.deadline
        self._socket.deadline = Deadline.after(_PONG_TIMEOUT_S)
        self._send(payload, ABNF.OPCODE_PONG)
        self._socket.deadline = waiting_until

    def _finish(self) -> Received:
        message = Received(bytes(self._parts), self._opcode == ABNF.OPCODE_TEXT, self._is_cut)
        self._parts, self._opcode, self._is_cut = bytearray(), 0, False
        return message

    def _send(self, payload: bytes, opcode: int) -> None:
        try:
            self._socket.sendall(ABNF.create_frame(payload, opcode).format())
        except OSError as exc:
            self.close()
            raise ChannelClosed(f"{self._name}: sending: {exc}") from exc


def _handshake(source: DeadlineSocket, endpoint: TcpEndpoint, path: str, headers: Mapping[str, str]) -> str | None:
    key = base64.b64encode(os.urandom(16))
    wanted = {
        "Host": str(endpoint),
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key.decode(),
        **headers,
    }
    source.sendall(request_head("GET", path, wanted))
    received = bytearray()
    # Byte by byte out of the socket's buffer: what follows the headers belongs to the first frame.
    while not received.endswith(b"\r\n\r\n"):
        byte = source.recv(1)
        if not byte or len(received) >= _MAX_HANDSHAKE_BYTES:
            raise ValueError(f"handshake ended after {len(received)} bytes")
        received += byte
    status, *rest = received.decode("latin-1").split("\r\n")
    if status.split(" ")[1:2] != ["101"]:
        raise ValueError(f"handshake refused: {status[:200]!r}")
    answered = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    accept = base64.b64encode(hashlib.sha1(key + _ACCEPT_SALT, usedforsecurity=False).digest()).decode()
    if answered.get("sec-websocket-accept") != accept:
        raise ValueError("handshake with a wrong Sec-WebSocket-Accept")
    return answered.get("sec-websocket-protocol")
