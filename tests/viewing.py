"""The viewer as tests open it: served in this process, with a screen of its own to show live."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deskfork.records.paths import RunPaths
from deskfork.viewer.server import open_viewer

SOON_S = 240.0
DRAWN = "document.querySelectorAll('#screens svg').length === 2"
SHOWN_STEP = "document.querySelector('#body h2')?.innerText"


def rows(count: int) -> str:
    return f"document.querySelectorAll('#rows tr').length === {count}"


@contextmanager
def viewing(run: RunPaths) -> Iterator[str]:
    """Serve a run; yields the URL."""
    with open_viewer(run.root) as viewer:
        thread = threading.Thread(target=viewer.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield viewer.url
        viewer.shutdown()
        thread.join(SOON_S)


@contextmanager
def vnc_server(place: Path) -> Iterator[list[int]]:
    """Serve a small screen by RFB 3.8 on a Unix socket; yields the types of the messages that came."""
    heard: list[int] = []
    lengths = {0: 19, 3: 9, 4: 7, 5: 5}

    def serve(connection: socket.socket) -> None:
        width, height = 64, 40
        with connection, connection.makefile("rb") as stream:
            connection.sendall(b"RFB 003.008\n")
            stream.read(12)
            connection.sendall(b"\x01\x01")
            stream.read(1)
            connection.sendall(b"\x00\x00\x00\x00")
            stream.read(1)
            form = struct.pack(">BBBBHHHBBBxxx", 32, 24, 0, 1, 255, 255, 255, 16, 8, 0)
            connection.sendall(struct.pack(">HH", width, height) + form + struct.pack(">I", 4) + b"fake")
            while kind := stream.read(1):
                heard.append(kind[0])
                if kind[0] == 2:
                    _, count = struct.unpack(">BH", stream.read(3))
                    stream.read(4 * count)
                else:
                    stream.read(lengths.get(kind[0], 0))
                if kind[0] == 3 and heard.count(3) == 1:
                    head = struct.pack(">BxHHHHHi", 0, 1, 0, 0, width, height, 0)
                    connection.sendall(head + b"\x60\xa0\x30\x00" * (width * height))

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield heard
        listener.shutdown(socket.SHUT_RDWR)
