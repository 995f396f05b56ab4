"""Guards against a hostile WebSocket server: frames without end, broken frames, redirects, cookies, and silence."""

import base64
import hashlib
import socket
import struct
import time
import tracemalloc
from collections.abc import Callable

import pytest
from transport_services import Peer, StartPeer

from deskfork.core.errors import TransportError
from deskfork.core.waiting import Deadline
from deskfork.transport.websocket_channel import (
    CUT_BYTES,
    MAX_FRAME_BYTES,
    ChannelClosed,
    DeadlinePassed,
    Received,
    WebSocketChannel,
)

TEXT, BINARY, CONT, CLOSE, PING = 1, 2, 0, 8, 9


def frame(payload: bytes, opcode: int = BINARY, *, is_final: bool = True, length: int | None = None) -> bytes:
    first = opcode | (0x80 if is_final else 0)
    size = len(payload) if length is None else length
    if size < 126:
        head = struct.pack("!BB", first, size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", first, 126, size)
    else:
        head = struct.pack("!BBQ", first, 127, size)
    return head + payload


def accept(connection: socket.socket, extra: str = "") -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(4096)
    key = next(line.split(b": ")[1] for line in received.split(b"\r\n") if line.startswith(b"Sec-WebSocket-Key"))
    digest = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
    connection.sendall(
        f"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n{extra}"
        f"SEC-WEBSOCKET-ACCEPT: {digest}\r\n\r\n".encode()
    )
    return received


def connect(server: Peer) -> WebSocketChannel:
    return WebSocketChannel.connect(server.endpoint, "/ws?secret=1", {"A": "b"}, Deadline.after(5), subprotocol="p")


def sending(*frames: bytes, extra: str = "") -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        accept(connection, extra)
        for each in frames:
            connection.sendall(each)
        connection.recv(1)

    return talk


def test_messages_arrive_whole_and_in_order(peer: StartPeer) -> None:
    channel = connect(
        peer(
            sending(
                frame(b"one"),
                frame(b"tw", TEXT, is_final=False) + frame(b"", PING) + frame(b"o", CONT),
                frame(b"x" * 70_000),
                extra="Sec-WebSocket-Protocol: p\r\n",
            )
        )
    )
    deadline = Deadline.after(5)
    assert channel.subprotocol == "p"
    assert channel.receive(deadline) == Received(b"one", is_text=False)
    assert channel.receive(deadline) == Received(b"two", is_text=True)
    assert channel.receive(deadline).payload == b"x" * 70_000
    channel.close()


def test_a_server_may_choose_no_subprotocol(peer: StartPeer) -> None:
    channel = connect(peer(sending()))
    assert channel.subprotocol is None
    channel.close()


def test_a_timeout_within_a_frame_loses_nothing(peer: StartPeer) -> None:
    whole = frame(b"y" * 100_000)

    def talk(connection: socket.socket) -> None:
        accept(connection)
        connection.sendall(whole[:50_000])
        connection.recv(1)
        connection.sendall(whole[50_000:])
        connection.recv(1)

    channel = connect(peer(talk))
    with pytest.raises(DeadlinePassed):
        channel.receive(Deadline.after(0.2))
    channel.send(b"go on", Deadline.after(5))
    assert channel.receive(Deadline.after(5)).payload == b"y" * 100_000
    channel.close()


def test_pings_are_answered_and_messages_masked(peer: StartPeer) -> None:
    received: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        accept(connection)
        connection.sendall(frame(b"abc", PING))
        received.append(connection.recv(100))
        connection.sendall(frame(b"done"))
        connection.recv(1)

    channel = connect(peer(talk))
    assert channel.receive(Deadline.after(5)).payload == b"done"
    channel.close()
    opcode, size, mask, body = received[0][0], received[0][1], received[0][2:6], received[0][6:]
    assert (opcode, size) == (0x8A, 0x83)
    assert bytes(b ^ m for b, m in zip(body, mask, strict=False)) == b"abc"


@pytest.mark.parametrize("is_fragmented", [False, True])
def test_a_huge_message_is_cut_and_never_held_whole(peer: StartPeer, is_fragmented: bool) -> None:
    size, piece = 2 * MAX_FRAME_BYTES, 1 << 20

    def talk(connection: socket.socket) -> None:
        accept(connection)
        if not is_fragmented:
            connection.sendall(frame(b"", length=size))
        for index in range(size // piece):
            opcode = CONT if index else BINARY
            chunk = b"z" * piece
            is_last = index == size // piece - 1
            connection.sendall(frame(chunk, opcode, is_final=is_last) if is_fragmented else chunk)
        connection.sendall(frame(b"next"))
        connection.recv(1)

    channel = connect(peer(talk))
    tracemalloc.start()
    try:
        cut = channel.receive(Deadline.after(30))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert cut.is_cut
    assert len(cut.payload) >= CUT_BYTES
    assert set(cut.payload) == {ord("z")}
    assert peak < (1.2 * size if is_fragmented else 8 << 20)
    assert channel.receive(Deadline.after(5)) == Received(b"next", is_text=False)
    channel.close()


@pytest.mark.parametrize(
    "raw",
    [
        frame(b"", CLOSE),
        frame(b"\x03\xe8bye", CLOSE),
        frame(b"x", CONT),
        frame(b"a", TEXT, is_final=False) + frame(b"b", TEXT),
        frame(b"x", 3),
        frame(b"x" * 126, PING),
        b"\xf2\x01x",
        frame(b"x", CLOSE),
    ],
    ids=["close", "close with reason", "stray", "interleaved", "opcode", "long ping", "reserved bits", "bad close"],
)
def test_a_broken_or_closed_stream_is_gone(peer: StartPeer, raw: bytes) -> None:
    channel = connect(peer(sending(raw)))
    with pytest.raises(ChannelClosed):
        channel.receive(Deadline.after(5))


def test_pings_without_end_do_not_stretch_the_deadline(peer: StartPeer) -> None:
    def talk(connection: socket.socket) -> None:
        accept(connection)
        connection.setblocking(False)
        until = Deadline.after(5)
        while not until.has_passed:
            try:
                connection.sendall(frame(b"", PING))
                connection.recv(65536)
            except BlockingIOError:
                time.sleep(0.001)

    channel = connect(peer(talk))
    started = time.monotonic()
    with pytest.raises(TransportError):
        channel.receive(Deadline.after(0.5))
    channel.close()
    assert time.monotonic() - started < 1.5


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 302 Found\r\nLocation: ws://127.0.0.1:9/\r\n\r\n",
        b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nSec-WebSocket-Accept: bm8=\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n" + b"A: b\r\n" * 10_000,
        b"nonsense\r\n\r\n",
        b"\r\n\r\n",
        b"",
    ],
    ids=["redirect", "refused", "wrong key", "endless headers", "nonsense", "empty", "closed"],
)
def test_a_refused_handshake_is_a_transport_error(peer: StartPeer, answer: bytes) -> None:
    def talk(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_RDWR)

    server = peer(talk)
    with pytest.raises(TransportError, match="ws://") as caught:
        connect(server)
    assert "secret" not in str(caught.value)
    assert server.connections == 1


def test_one_guests_cookies_are_not_sent_to_the_next(peer: StartPeer) -> None:
    requests: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        requests.append(accept(connection, "Set-Cookie: a=b; Domain=127.0.0.1\r\n"))
        connection.recv(1)

    for _ in range(2):
        connect(peer(talk)).close()
    assert all(b"ookie" not in request for request in requests)


def test_sending_to_a_closed_peer_is_reported(peer: StartPeer) -> None:
    def talk(connection: socket.socket) -> None:
        accept(connection)
        connection.shutdown(socket.SHUT_RDWR)

    channel = connect(peer(talk))
    with pytest.raises(ChannelClosed):
        channel.send(b"x" * 50_000_000, Deadline.after(5))
