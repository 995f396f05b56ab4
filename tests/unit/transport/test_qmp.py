"""Guards against a QMP client that hangs, mixes up answers, or misses a migration's end; on a real QEMU under TCG."""

import contextlib
import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from transport_services import StartPeer

from deskfork.core.errors import TransportError
from deskfork.core.waiting import Deadline
from deskfork.transport.qmp import QmpClient
from deskfork.transport.screen import decode_ppm

QEMU = shutil.which("qemu-system-x86_64")
needs_qemu = pytest.mark.skipif(QEMU is None, reason="needs qemu-system-x86_64")


@contextlib.contextmanager
def running_qemu(directory: Path, name: str, *options: str) -> Iterator[QmpClient]:
    path = directory / f"{name}.sock"
    command = [
        *(str(QEMU), "-accel", "tcg", "-machine", "pc", "-m", "32", "-display", "none", "-nodefaults", "-vga", "std"),
        *("-qmp", f"unix:{path},server=on,wait=off", *options),
    ]
    process = subprocess.Popen(command)
    client = QmpClient(path)
    try:
        client.connect(Deadline.after(20))
        yield client
    finally:
        client.quit()
        try:
            process.wait(10)
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def qmp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QmpClient]:
    with running_qemu(tmp_path_factory.mktemp("qmp"), "one") as client:
        yield client


@needs_qemu
def test_stop_and_cont_change_the_status_and_are_reported(qmp: QmpClient) -> None:
    assert qmp.status() == "running"
    qmp.stop()
    assert qmp.status() == "paused"
    qmp.cont()
    assert qmp.status() == "running"
    assert qmp.wait_event({"RESUME"}, Deadline.after(5))["event"] == "RESUME"
    assert qmp.wait_event({"STOP"}, Deadline.after(5))["event"] == "STOP"
    with pytest.raises(TransportError, match="event STOP"):
        qmp.wait_event({"STOP"}, Deadline.after(0.05))


@needs_qemu
def test_the_screen_is_dumped_as_an_image(qmp: QmpClient, tmp_path: Path) -> None:
    qmp.screendump(tmp_path / "screen.ppm")
    image = decode_ppm(tmp_path / "screen.ppm")
    assert image.mode == "RGB"
    assert image.width >= 640


@needs_qemu
def test_a_refusal_names_the_command_and_says_why(qmp: QmpClient) -> None:
    with pytest.raises(TransportError, match=r"no-such-command.*not been found"):
        qmp.execute("no-such-command")
    with pytest.raises(TransportError, match=r"screendump: .*/nowhere/x"):
        qmp.screendump(Path("/nowhere/x.ppm"))
    assert qmp.status() == "running"


@needs_qemu
def test_the_human_monitor_answers_in_text(qmp: QmpClient) -> None:
    assert "running" in qmp.human("info status")


@needs_qemu
def test_threads_share_a_connection(qmp: QmpClient) -> None:
    answers: list[object] = []

    def ask(index: int) -> None:
        for _ in range(20):
            answers.append(qmp.status() if index % 2 else qmp.execute("query-name"))

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(map(str, answers)) == sorted(["running"] * 40 + ["{}"] * 40)


@needs_qemu
def test_a_frozen_machine_goes_on_in_another_process(tmp_path: Path) -> None:
    memory = tmp_path / "memory"

    def options(share: str) -> tuple[str, ...]:
        backend = f"memory-backend-file,id=ram,size=32M,mem-path={memory},share={share}"
        return "-object", backend, "-machine", "memory-backend=ram"

    state = f"file:{tmp_path}/state"
    with running_qemu(tmp_path, "source", *options("on")) as source:
        source.human("write 0x1000 1")
        source.stop()
        source.migrate(state, [("x-ignore-shared", True)])
        source.wait_migrated(Deadline.after(20))
        assert source.migrate_status() == "completed"
        assert source.status() == "postmigrate"
    assert (tmp_path / "state").stat().st_size < 8 << 20
    with running_qemu(tmp_path, "fork", *options("off"), "-incoming", "defer") as fork:
        assert fork.status() == "inmigrate"
        assert fork.migrate_status() == "none"
        fork.migrate_incoming(state, [("x-ignore-shared", True)])
        fork.wait_migrated(Deadline.after(20))
        fork.cont()
        assert fork.status() == "running"


@needs_qemu
def test_a_migration_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"no migration stream" * 100)
    with running_qemu(tmp_path, "bad", "-incoming", "defer") as client:
        # `exit-on-error` would end QEMU before it could say why.
        client.execute("migrate-set-capabilities", {"capabilities": [{"capability": "events", "state": True}]})
        client.execute("migrate-incoming", {"uri": f"file:{tmp_path}/bad", "exit-on-error": False})
        with pytest.raises(TransportError, match="migration failed: "):
            client.wait_migrated(Deadline.after(20))


@needs_qemu
def test_a_qemu_that_ends_is_a_transport_error(tmp_path: Path) -> None:
    with running_qemu(tmp_path, "ending") as client:
        other = QmpClient(tmp_path / "ending.sock")
        client.execute("quit")
        with pytest.raises(TransportError):
            client.wait_event({"NEVER"}, Deadline.after(10))
        with pytest.raises(TransportError, match="not connected"):
            client.status()
        other.close()


def test_no_qemu_is_a_transport_error_at_the_deadline(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(TransportError, match="nothing listens"):
        QmpClient(tmp_path / "none.sock").connect(Deadline.after(0.2))
    assert time.monotonic() - started < 1.0


@pytest.mark.parametrize(
    "said",
    [
        b"nonsense\n",
        b"[]\n",
        b'{"QMP": {}}\n[1]\n',
        b'{"hello": 1}\n',
        b"[" * 100_000 + b"\n",
        b"\xff\xfe\n",
        b'{"QMP": {}}\n{"event": 5}\n{"event": "X", "data": 7}\n{"id": 1, "error": "odd"}\n',
        b'{"QMP": {}}\n{"id": 1}\n',
    ],
)
def test_a_peer_that_is_no_qemu_is_a_transport_error(peer: StartPeer, tmp_path: Path, said: bytes) -> None:
    def talk(connection: socket.socket) -> None:
        connection.sendall(said)
        connection.recv(1000)

    peer(talk, str(tmp_path / "peer.sock"))
    with pytest.raises(TransportError):
        QmpClient(tmp_path / "peer.sock").connect(Deadline.after(2))


def test_a_line_without_end_is_not_collected_for_ever(peer: StartPeer, tmp_path: Path) -> None:
    def talk(connection: socket.socket) -> None:
        while True:
            connection.sendall(b"x" * 1_000_000)

    peer(talk, str(tmp_path / "peer.sock"))
    with pytest.raises(TransportError, match="line of more than"):
        QmpClient(tmp_path / "peer.sock").connect(Deadline.after(20))


def test_only_the_latest_events_are_kept(peer: StartPeer, tmp_path: Path) -> None:
    def talk(connection: socket.socket) -> None:
        connection.sendall(b'{"QMP": {}}\n')
        connection.recv(1000)
        for index in range(5000):
            connection.sendall(json.dumps({"event": f"E{index}", "data": {}}).encode() + b"\n")
        connection.sendall(b'{"return": {}, "id": 1}\n')
        connection.recv(1000)

    peer(talk, str(tmp_path / "peer.sock"))
    client = QmpClient(tmp_path / "peer.sock")
    client.connect(Deadline.after(10))
    assert client.wait_event({"E4999"}, Deadline.after(1))["event"] == "E4999"
    with pytest.raises(TransportError):
        client.wait_event({"E0"}, Deadline.after(0.1))
    client.close()


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next(peer: StartPeer, tmp_path: Path) -> None:
    def talk(connection: socket.socket) -> None:
        connection.sendall(b'{"QMP": {}}\n')
        connection.recv(1000)
        connection.sendall(b'{"return": {}, "id": 1}\n')
        connection.recv(1000)
        connection.recv(1000)
        connection.sendall(b'{"return": {"status": "late"}, "id": 2}\n{"return": {"status": "own"}, "id": 3}\n')
        connection.recv(1000)

    peer(talk, str(tmp_path / "peer.sock"))
    client = QmpClient(tmp_path / "peer.sock")
    client.connect(Deadline.after(10))
    with pytest.raises(TransportError, match="query-status: nothing in"):
        client.execute("query-status", timeout_s=0.1)
    assert client.status() == "own"
    client.close()
