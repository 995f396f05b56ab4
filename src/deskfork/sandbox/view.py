"""Showing a live desktop in a browser: noVNC's page and a WebSocket bridge to QEMU's VNC socket, on loopback.

`open_view` starts `python -m deskfork.sandbox.view FOLDER`, a process that serves until the sandbox is gone.
"""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

from deskfork.core.atomic import write_atomic
from deskfork.core.errors import ConfigError, SandboxError
from deskfork.core.waiting import Deadline, wait_until

NOVNC = Path("/usr/share/novnc")
_URL_NAME = "view-url"


def open_view(directory: Path) -> str:
    """Return the URL of a page that shows the sandbox in `directory`; asking again returns the same one.

    Raises:
        ConfigError: noVNC is not installed.
        SandboxError: The server did not start.
    """
    if not (NOVNC / "vnc.html").is_file():
        raise ConfigError(f"noVNC is not installed in {NOVNC}: `make setup` installs it (Debian package: novnc)")
    url = directory / _URL_NAME
    if not _is_served(url):
        url.unlink(missing_ok=True)
        server = subprocess.Popen(
            [sys.executable, "-m", "deskfork.sandbox.view", str(directory)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if not wait_until(lambda: url.exists() or server.poll() is not None, Deadline.after(20.0)) or not url.exists():
            server.kill()
            raise SandboxError(f"{directory.name}: the page that shows it could not be served")
        # It ends with the sandbox, and who asked may live on.
        threading.Thread(target=server.wait, name="view", daemon=True).start()
    return url.read_text()


def _is_served(url: Path) -> bool:
    try:
        port = urlsplit(url.read_text()).port
        socket.create_connection(("127.0.0.1", port or 0), timeout=5.0).close()
    except OSError:
        return False
    return True


def serve(directory: Path) -> None:
    """Serve the page until the sandbox's folder is gone."""
    token = secrets.token_hex(16)
    tokens = directory / "view-tokens"
    write_atomic(tokens, f"{token}: unix_socket:{directory / 'vnc.sock'}\n", mode=0o600)
    websockify = shutil.which("websockify", path=str(Path(sys.executable).parent)) or "websockify"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = [websockify, "--inetd", "--web", str(NOVNC)]
        command += ["--token-plugin", "ReadOnlyTokenFile", "--token-source", str(tokens)]
        bridge = subprocess.Popen(command, stdin=listener.fileno(), process_group=0)
    try:
        page = f"http://127.0.0.1:{port}/vnc.html?autoconnect=true&resize=scale&path=websockify%3Ftoken%3D{token}"
        write_atomic(directory / _URL_NAME, page, mode=0o600)
        while directory.is_dir() and bridge.poll() is None:
            wait_until(
                lambda: not directory.is_dir() or bridge.poll() is not None, Deadline.after(60.0), interval_s=0.5
            )
    finally:
        # websockify serves each connection in a child of its own.
        os.killpg(bridge.pid, 9)
        bridge.wait()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
