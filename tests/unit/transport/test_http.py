"""Guards against guests that answer HTTP without end, too slowly, too largely, or twice."""

import socket
import time
from collections.abc import Callable

import pytest
from transport_services import StartPeer

from deskfork.core.errors import TransportError
from deskfork.core.waiting import Deadline
from deskfork.transport.http import HttpClient, request_head

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def read_request(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        chunk = connection.recv(65536)
        if not chunk:
            raise OSError("closed")
        received += chunk
    return received


def always(answer: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        while True:
            read_request(connection)
            connection.sendall(answer)

    return talk


def once(answer: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_RDWR)

    return talk


def test_requests_share_one_connection(peer: StartPeer) -> None:
    server = peer(always(OK))
    client = HttpClient(server.endpoint)
    for _ in range(3):
        reply = client.request("GET", "/", {}, Deadline.after(5))
        assert (reply.status, reply.body) == (200, b"ok")
    client.close()
    assert server.connections == 1


def test_a_request_with_a_body_is_one_segment(peer: StartPeer) -> None:
    received: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        received.append(connection.recv(65536))
        connection.sendall(OK)

    client = HttpClient(peer(talk).endpoint)
    client.request("POST", "/x", {"A": "b"}, Deadline.after(5), payload={"c": 1})
    client.close()
    head, _, body = received[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /x HTTP/1.1\r\n")
    assert b"Content-Length: 8" in head
    assert body == b'{"c": 1}'


def test_a_get_is_repeated_when_the_kept_connection_was_closed(peer: StartPeer) -> None:
    server = peer(once(OK))
    client = HttpClient(server.endpoint)
    for _ in range(3):
        assert client.request("GET", "/", {}, Deadline.after(5)).body == b"ok"
    client.close()
    assert server.connections == 3


def test_a_post_is_never_repeated(peer: StartPeer) -> None:
    server = peer(once(OK))
    client = HttpClient(server.endpoint)
    client.request("GET", "/", {}, Deadline.after(5))
    with pytest.raises(TransportError):
        client.request("POST", "/", {}, Deadline.after(5))
    assert server.connections == 1
    assert client.request("POST", "/", {}, Deadline.after(5)).body == b"ok"
    client.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n" + b"x" * 5000 + b"\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"\x00\xff" * 50,
        b"",
    ],
    ids=[
        "long",
        "endless",
        "chunked",
        "bad chunk",
        "short",
        "bad status",
        "header",
        "headers",
        "ssh",
        "raw",
        "nothing",
    ],
)
def test_an_answer_that_is_not_as_agreed_is_a_transport_error(peer: StartPeer, answer: bytes) -> None:
    client = HttpClient(peer(once(answer)).endpoint)
    with pytest.raises(TransportError, match="GET http://"):
        client.request("GET", "/x", {}, Deadline.after(5), max_bytes=1000)
    client.close()


@pytest.mark.parametrize("unit", [b"HTTP/1.1 100 Continue\r\n\r\n", b"H"], ids=["continue for ever", "drip"])
def test_an_answer_that_never_ends_is_given_up_at_the_deadline(peer: StartPeer, unit: bytes) -> None:
    def talk(connection: socket.socket) -> None:
        connection.settimeout(0.02)
        while True:
            connection.sendall(unit)
            try:
                connection.recv(65536)
            except TimeoutError:
                continue

    client = HttpClient(peer(talk).endpoint)
    started = time.monotonic()
    with pytest.raises(TransportError):
        client.request("GET", "/", {}, Deadline.after(0.5))
    client.close()
    assert time.monotonic() - started < 2.0


def test_a_line_break_cannot_smuggle_a_header() -> None:
    with pytest.raises(ValueError, match="line break"):
        request_head("GET", "/", {"Authorization": "token a\r\nX: y"})
