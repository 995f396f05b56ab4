"""The gateway's token can be replaced while it runs, and the old one is refused on REST and on the WebSocket.

Against the real Jupyter Kernel Gateway: which of its settings it asks per request is not documented.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import websocket
from guest_parts import NEW_TOKEN, OLD_TOKEN

from deskfork_guest.identity import send_token
from deskfork_guest.services import is_gateway_ready

START_TIMEOUT_S = 60.0
SERVE = """
import sys
from pathlib import Path
from deskfork_guest.gateway import make_gateway, serve_control
token, port, control, uid = sys.argv[1:]
kernel_dirs = [str(Path(sys.prefix) / "share/jupyter/kernels")]
gateway = make_gateway(token, ip="127.0.0.1", port=int(port), kernel_dirs=kernel_dirs)
with serve_control(gateway, Path(control), allowed_uid=int(uid)):
    gateway.start()
"""


@dataclass(frozen=True)
class Running:
    """One gateway process."""

    process: subprocess.Popen[bytes]
    port: int
    control: str

    def status(self, token: str) -> int:
        """Return the status of a REST request with `token`."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/kernels", headers={"Authorization": f"token {token}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as exc:
            exc.close()
            return exc.code

    def kernels(self, token: str) -> list[dict[str, object]]:
        """Return the gateway's kernels."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/kernels", headers={"Authorization": f"token {token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as reply:
            kernels: list[dict[str, object]] = json.load(reply)
            return kernels

    def handshake_status(self, kernel_id: object, token: str) -> int:
        """Return the status of a WebSocket handshake with `token`."""
        url = f"ws://127.0.0.1:{self.port}/api/kernels/{kernel_id}/channels"
        try:
            connection = websocket.create_connection(url, header=[f"Authorization: token {token}"], timeout=30)
        except websocket.WebSocketBadStatusException as exc:
            return int(exc.status_code)
        connection.close()
        return 101


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def spawn(folder: Path, port: int, uid: int, runtime: str) -> Running:
    """Start a gateway in `folder`, its kernel's sockets in `runtime`."""
    control = str(folder / "control")
    environment = {**os.environ, "HOME": str(folder), "JUPYTER_RUNTIME_DIR": runtime}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, OLD_TOKEN, str(port), control, str(uid)],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    return Running(process, port, control)


@contextmanager
def running_gateway(folder: Path, uid: int) -> Iterator[Running]:
    """Run a gateway that takes tokens from `uid`, from when its kernel is ready."""
    # Paths of Unix sockets may have 107 bytes: pytest's folders are too deep.
    with tempfile.TemporaryDirectory(prefix="kg-") as runtime:
        yield from _running(spawn(folder, free_port(), uid, runtime), folder)


def _running(running: Running, folder: Path) -> Iterator[Running]:
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not is_gateway_ready(OLD_TOKEN, port=running.port):
            assert time.monotonic() < deadline, (folder / "log").read_text()
            assert running.process.poll() is None, (folder / "log").read_text()
            time.sleep(0.1)
        yield running
    finally:
        running.process.terminate()
        running.process.wait(timeout=20)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_gateway(tmp_path_factory.mktemp("gateway"), os.getuid()) as running:
        yield running


def test_a_replaced_token_holds_everywhere_at_once(gateway: Running) -> None:
    (kernel,) = gateway.kernels(OLD_TOKEN)
    assert kernel["execution_state"] == "idle"
    assert gateway.handshake_status(kernel["id"], OLD_TOKEN) == 101

    send_token(gateway.control, NEW_TOKEN)

    assert gateway.status(OLD_TOKEN) == 401
    assert gateway.status("") == 401
    assert gateway.status(NEW_TOKEN) == 200
    assert gateway.handshake_status(kernel["id"], OLD_TOKEN) == 401
    assert gateway.handshake_status(kernel["id"], NEW_TOKEN) == 101
    assert [again["id"] for again in gateway.kernels(NEW_TOKEN)] == [kernel["id"]]
    assert not is_gateway_ready(OLD_TOKEN, port=gateway.port)

    send_token(gateway.control, OLD_TOKEN)
    assert gateway.status(OLD_TOKEN) == 200


def test_garbage_on_the_control_socket_changes_nothing(gateway: Running) -> None:
    for garbage in (b"\xff\xfe", b""):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(10.0)
            connection.connect(gateway.control)
            if garbage:
                connection.send(garbage)
                assert connection.recv(16) == b""
    assert gateway.status(OLD_TOKEN) == 200


def test_a_busy_port_ends_the_gateway_instead_of_moving_it(gateway: Running, tmp_path: Path) -> None:
    second = spawn(tmp_path, gateway.port, os.getuid(), str(tmp_path))
    assert second.process.wait(timeout=START_TIMEOUT_S) != 0


def test_a_kernel_that_cannot_start_ends_the_gateway(tmp_path: Path) -> None:
    too_deep = tmp_path / ("deep" * 25)
    too_deep.mkdir()
    assert spawn(tmp_path, free_port(), os.getuid(), str(too_deep)).process.wait(timeout=START_TIMEOUT_S) == 1
    assert "the kernel did not start" in (tmp_path / "log").read_text()


def test_other_users_cannot_set_the_token(tmp_path: Path) -> None:
    with running_gateway(tmp_path, os.getuid() + 1) as running:
        with pytest.raises(OSError, match=r"confirm|reset|pipe"):
            send_token(running.control, NEW_TOKEN)
        assert running.status(NEW_TOKEN) == 401
        assert running.status(OLD_TOKEN) == 200
