"""Guards who answers show-in-jupyterlab: whatever is asked, an answer comes, and it says what was wrong."""

import socket

import pytest

from deskfork_guest.lab import ACTIONS, answer_request


def ask(request: bytes) -> str:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(2.0)
        ours.sendall(request)
        ours.shutdown(socket.SHUT_WR)
        answer_request(theirs)
        return ours.recv(4096).decode()


@pytest.mark.parametrize("action", ["show", "saved"])
def test_without_a_browser_the_reason_is_told(action: str) -> None:
    assert action in ACTIONS
    assert ask(f"0.1\na.ipynb\n{action}\n".encode()).startswith("the browser's debugging port: ")


def test_without_a_server_nothing_is_loaded() -> None:
    assert ask(b"0.1\na.ipynb\nload\n").startswith("JupyterLab's server")


@pytest.mark.parametrize("request_", [b"", b"soon\na\nshow\n", b"1\na\nshout\n", b"1\n\xff\xfe\n"])
def test_a_broken_request_is_refused(request_: bytes) -> None:
    assert ask(request_) not in ("", "ok")


def test_who_asked_and_left_does_no_harm() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.sendall(b"0.1\n\nshow\n")
        ours.close()
        answer_request(theirs)
