"""The observer's door: who has no valid token learns and changes nothing, and a rekey is all or nothing."""

from pathlib import Path

import pytest
from guest_parts import (
    ENTROPY,
    NEW_TOKEN,
    OLD_TOKEN,
    Client,
    NotingKernel,
    gateway_answering,
    make_identity,
    rekey_body,
)

from deskfork_guest.accessibility.look import AccessibilityReader
from deskfork_guest.app import MAX_BODY_BYTES, Observer
from deskfork_guest.desktop import DesktopReader


@pytest.fixture
def kernel() -> NotingKernel:
    return NotingKernel()


@pytest.fixture
def client(tmp_path: Path, kernel: NotingKernel) -> Client:
    # No X server has this number: the desktop is unavailable.
    observer = Observer(make_identity(tmp_path, kernel), DesktopReader(":4711"), AccessibilityReader(tmp_path / "bus"))
    return Client(observer)


@pytest.mark.parametrize(
    "path", ["/health", "/desktop", "/screenshot", "/accessibility", "/rekey", "/docs", "/openapi.json", "/none"]
)
@pytest.mark.parametrize("header", ["", "Bearer ", f"Bearer {NEW_TOKEN}", f"token {OLD_TOKEN}", OLD_TOKEN])
def test_nothing_answers_without_the_token(client: Client, kernel: NotingKernel, path: str, header: str) -> None:
    method = "POST" if path == "/rekey" else "GET"
    reply = client.call(method, path, authorization=header, json=rekey_body())
    assert reply.status_code == 401
    assert kernel.noted == []


def test_rekey_replaces_everything_at_once(client: Client, kernel: NotingKernel, tmp_path: Path) -> None:
    with gateway_answering(tmp_path / "control", b"ok") as taken:
        reply = client.call("POST", "/rekey", json=rekey_body())
    assert reply.status_code == 200
    assert set(reply.json()) == {"time_ns"}
    assert taken == [NEW_TOKEN]
    assert kernel.noted == [("clock", 1_800_000_000_000_000_000), ("entropy", ENTROPY), ("hostname", "desktop-7")]
    assert (tmp_path / "token").read_text() == NEW_TOKEN
    assert (tmp_path / "machine-id").read_text() == "abcdef" * 5 + "01\n"
    assert client.call("GET", "/desktop").status_code == 401
    assert client.call("GET", "/desktop", authorization=f"Bearer {NEW_TOKEN}").status_code == 503


@pytest.mark.parametrize("answer", [b"no", b""])
def test_a_gateway_that_does_not_confirm_leaves_the_old_token(client: Client, tmp_path: Path, answer: bytes) -> None:
    with gateway_answering(tmp_path / "control", answer):
        reply = client.call("POST", "/rekey", json=rekey_body())
    assert reply.status_code == 503
    assert "did not confirm" in reply.json()["detail"]
    assert (tmp_path / "token").read_text() == OLD_TOKEN
    assert client.call("GET", "/desktop").status_code == 503


def test_no_gateway_at_all_leaves_the_old_token(client: Client, tmp_path: Path) -> None:
    assert client.call("POST", "/rekey", json=rekey_body()).status_code == 503
    assert (tmp_path / "token").read_text() == OLD_TOKEN


def test_a_kernel_that_refuses_leaves_the_old_token(tmp_path: Path) -> None:
    observer = Observer(
        make_identity(tmp_path, NotingKernel(refuses=True)),
        DesktopReader(":4711"),
        AccessibilityReader(tmp_path / "bus"),
    )
    client = Client(observer)
    reply = client.call("POST", "/rekey", json=rekey_body())
    assert reply.status_code == 503
    assert "clock_settime" in reply.json()["detail"]
    assert client.call("GET", "/desktop").status_code == 503


@pytest.mark.parametrize(
    "changes",
    [
        {"token": "short"},
        {"token": "with space 0123456789"},
        {"token": "line\nbreak-0123456789"},
        {"time_ns": -1},
        {"time_ns": "soon"},
        {"entropy": "not base64!"},
        {"entropy": ""},
        {"hostname": "../etc"},
        {"hostname": ""},
        {"machine_id": "xyz"},
        {"extra": 1},
    ],
)
def test_malformed_rekeys_are_refused_before_anything_changes(
    client: Client, kernel: NotingKernel, changes: dict[str, object]
) -> None:
    assert client.call("POST", "/rekey", json=rekey_body(**changes)).status_code == 422
    assert kernel.noted == []


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b" " * (MAX_BODY_BYTES + 1) + b"{}"])
def test_bodies_that_are_no_request_are_refused(client: Client, kernel: NotingKernel, body: bytes) -> None:
    assert client.call("POST", "/rekey", content=body).status_code == 422
    assert kernel.noted == []


@pytest.mark.parametrize("path", ["/desktop", "/screenshot", "/accessibility"])
def test_no_x_server_is_said_so(client: Client, path: str) -> None:
    reply = client.call("GET", path)
    assert reply.status_code == 503
    assert ":4711" in reply.json()["detail"]
