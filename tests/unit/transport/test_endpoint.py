"""Guards against a peer that stretches a wait by dripping bytes, and against delayed packets."""

import socket
import time
from collections import deque

import pytest
from transport_services import StartPeer

from deskfork.core.errors import TransportError
from deskfork.core.waiting import Deadline
from deskfork.transport.endpoint import DeadlineSocket, TcpEndpoint, open_deadline_socket, open_socket


def test_nothing_listening_is_a_transport_error() -> None:
    with pytest.raises(TransportError, match="refused"):
        open_socket(TcpEndpoint("127.0.0.1", 1), Deadline.after(5))


def test_nagle_is_off(peer: StartPeer) -> None:
    server = peer(lambda connection: connection.recv(1))
    with open_socket(server.endpoint, Deadline.after(5)) as connected:
        assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


def test_dripping_bytes_cannot_stretch_the_deadline(peer: StartPeer) -> None:
    def drip(connection: socket.socket) -> None:
        connection.settimeout(0.05)
        while True:
            connection.sendall(b"x")
            try:
                connection.recv(1)
            except TimeoutError:
                continue

    source = open_deadline_socket(peer(drip).endpoint, Deadline.after(0.4))
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        deque(iter(lambda: source.recv(100), b""))
    source.close()
    assert 0.3 < time.monotonic() - started < 1.0


def test_a_peer_that_takes_nothing_cannot_stretch_sending(peer: StartPeer) -> None:
    started = time.monotonic()
    waiting = Deadline.after(5)

    def ignore(connection: socket.socket) -> None:
        while not waiting.has_passed and connection.recv(1, socket.MSG_PEEK):
            time.sleep(0.05)

    source = open_deadline_socket(peer(ignore).endpoint, Deadline.after(0.4))
    with pytest.raises(TimeoutError):
        source.sendall(bytes(50_000_000))
    source.close()
    assert time.monotonic() - started < 2.0


def test_a_passed_deadline_reads_nothing_more() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"abc")
        source = DeadlineSocket(ours, Deadline.after(0))
        with pytest.raises(TimeoutError):
            source.recv(3)
        source.deadline = Deadline.after(1)
        assert (source.recv(2), source.recv(2)) == (b"ab", b"c")


def test_readable_tells_bytes_and_closing_from_silence() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        source = DeadlineSocket(ours, Deadline.after(1))
        assert not source.is_readable()
        theirs.sendall(b"ab")
        assert source.is_readable()
        assert source.recv(1) == b"a"
        assert source.is_readable()
        assert source.recv(1) == b"b"
        assert not source.is_readable()
        theirs.close()
        assert source.is_readable()
