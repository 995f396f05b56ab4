"""Guards against an exception of paramiko, websocket-client, http.client or a socket that reaches a caller as itself.

Every client meets peers that misbehave in every way; each meeting must end in a TransportError, and soon.
"""

import os
import random
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import paramiko
import pytest
from transport_services import StartPeer

from deskfork.core.errors import TransportError
from deskfork.core.waiting import Deadline
from deskfork.transport.endpoint import TcpEndpoint
from deskfork.transport.kernel import KernelClient
from deskfork.transport.observer import ObserverClient
from deskfork.transport.qmp import QmpClient
from deskfork.transport.ssh import SshClient

LIMIT_S = 0.3


def closes(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def resets(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.recv(1)
    connection.close()


def is_silent(connection: socket.socket) -> None:
    while connection.recv(65536):
        continue


def talks_garbage(connection: socket.socket) -> None:
    connection.sendall(random.Random(1).randbytes(100_000))
    is_silent(connection)


def talks_lines(connection: socket.socket) -> None:
    connection.sendall(b"hello there\r\n\r\n" * 1000)
    is_silent(connection)


def is_an_ssh_server_at_first(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" + random.Random(2).randbytes(5000))
    is_silent(connection)


def is_a_web_server_at_first(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nContent-Length: 100000\r\n\r\n{}")
    is_silent(connection)


PEERS = [
    closes,
    resets,
    is_silent,
    talks_garbage,
    talks_lines,
    is_an_ssh_server_at_first,
    is_a_web_server_at_first,
]


def connect_kernel(endpoint: TcpEndpoint) -> None:
    client = KernelClient(endpoint, "t", name="x")
    try:
        client.connect("some-id", deadline=Deadline.after(LIMIT_S))
    finally:
        client.close()


def find_kernel(endpoint: TcpEndpoint) -> None:
    client = KernelClient(endpoint, "t", name="x")
    try:
        client.connect(None, deadline=Deadline.after(LIMIT_S))
    finally:
        client.close()


def ask_observer(endpoint: TcpEndpoint) -> None:
    client = ObserverClient(endpoint, "t")
    try:
        client.desktop(Deadline.after(LIMIT_S))
    finally:
        client.close()


def rekey(endpoint: TcpEndpoint) -> None:
    client = ObserverClient(endpoint, "t")
    try:
        client.rekey("u", 1, os.urandom(64), "h", "0" * 32, deadline=Deadline.after(LIMIT_S))
    finally:
        client.close()


def ssh_client(endpoint: TcpEndpoint) -> SshClient:
    key = paramiko.RSAKey.generate(1024)
    return SshClient(endpoint, user="x", private_key=key, host_key="ssh-ed25519 AAAA")


def run_by_ssh(endpoint: TcpEndpoint) -> None:
    client = ssh_client(endpoint)
    try:
        client._transport = client._connect(Deadline.after(LIMIT_S))
    finally:
        client.close()


def put_by_ssh(endpoint: TcpEndpoint) -> None:
    client = ssh_client(endpoint)
    try:
        client.put(b"x", PurePosixPath("/tmp/x"), timeout_s=LIMIT_S)
    finally:
        client.close()


USES = [connect_kernel, find_kernel, ask_observer, rekey, run_by_ssh, put_by_ssh]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("talk", PEERS)
def test_a_misbehaving_peer_is_a_transport_error(
    peer: StartPeer,
    use: Callable[[TcpEndpoint], None],
    talk: Callable[[socket.socket], None],
) -> None:
    started = time.monotonic()
    with pytest.raises(TransportError) as caught:
        use(peer(talk).endpoint)
    assert "127.0.0.1" in str(caught.value)
    assert time.monotonic() - started < LIMIT_S + 3


@pytest.mark.parametrize("use", USES)
def test_nobody_there_is_a_transport_error(use: Callable[[TcpEndpoint], None]) -> None:
    with pytest.raises(TransportError, match="refused"):
        use(TcpEndpoint("127.0.0.1", 1))


@pytest.mark.parametrize("talk", PEERS)
def test_a_misbehaving_qemu_is_a_transport_error(
    peer: StartPeer, talk: Callable[[socket.socket], None], tmp_path: Path
) -> None:
    peer(talk, str(tmp_path / "q"))
    with pytest.raises(TransportError, match="qmp"):
        QmpClient(tmp_path / "q").connect(Deadline.after(LIMIT_S))
