"""Guards the page that shows a desktop: behind its token, on loopback, and only for as long as the sandbox lives."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest
from websocket import ABNF, WebSocket, WebSocketException, create_connection

from deskfork.core.errors import SandboxError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.view import NOVNC, open_view

GREETING = b"RFB 003.008\n"
SOON_S = 20.0

pytestmark = [
    pytest.mark.skipif(not (NOVNC / "vnc.html").is_file(), reason="noVNC is not installed"),
    # The server is meant to outlive the command that started it.
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A sandbox's folder, with something behind its VNC socket that greets as QEMU does."""
    folder = tmp_path / "0123abcd"
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "vnc.sock"))
        listener.listen()
        threading.Thread(target=greet, args=(listener,), daemon=True).start()
        yield folder
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        # Else accept() would go on in its thread.
        listener.shutdown(socket.SHUT_RDWR)
        assert wait_until(lambda: not servers(folder), Deadline.after(SOON_S))


def greet(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.sendall(GREETING)
            connection.recv(1)


def servers(folder: Path) -> list[int]:
    """Return the processes that have to do with the page of `folder`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(str(folder).encode() in word for word in words):
            found.append(int(entry.name))
    return found


def bridge(url: str, token: str | None = None) -> WebSocket:
    parts = urlsplit(url)
    path = parse_qs(parts.query)["path"][0] if token is None else f"websockify?token={token}"
    return create_connection(f"ws://{parts.netloc}/{path}", timeout=10, subprotocols=["binary"])


def greeting(url: str, token: str | None = None) -> bytes:
    """Return the first bytes that the bridge passes on, none if it closes the connection."""
    connection = bridge(url, token)
    try:
        opcode, content = connection.recv_data()
        return content if opcode == ABNF.OPCODE_BINARY else b""
    finally:
        connection.close()


def test_the_page_and_its_bridge_are_served_on_loopback(directory: Path) -> None:
    url = open_view(directory)
    assert urlsplit(url).hostname == "127.0.0.1"
    with urlopen(url, timeout=10) as page:
        assert b"noVNC" in page.read()
    assert greeting(url) == GREETING
    assert greeting(url) == GREETING
    assert (directory / "view-url").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("token", ["", "0" * 32, "../vnc"])
def test_a_wrong_token_reaches_nothing(directory: Path, token: str) -> None:
    url = open_view(directory)
    try:
        assert greeting(url, token) == b""
    except (WebSocketException, OSError):
        return


def test_asking_again_starts_nothing_new(directory: Path) -> None:
    first = open_view(directory)
    before = servers(directory)
    assert open_view(directory) == first
    assert servers(directory) == before


def test_a_page_whose_server_died_is_served_anew(directory: Path) -> None:
    first = open_view(directory)
    for pid in servers(directory):
        os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not servers(directory), Deadline.after(SOON_S))
    second = open_view(directory)
    assert second != first
    assert greeting(second) == GREETING


def test_without_a_folder_there_is_no_page(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="could not be served"):
        open_view(tmp_path / "gone")
