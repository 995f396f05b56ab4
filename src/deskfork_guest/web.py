"""Replays recorded web pages inside the guest, for a task that cannot do without them while there is no network.

Answers https requests for the recorded addresses and for nothing else: each file below a root is one page, its path the
host name and the path of the address. The hosts' names lead here, through /etc/hosts, only while this runs; it is
started for the tasks that need it, so that any other task finds the network as it is.
"""

import os
import signal
import socket
import ssl
from collections.abc import Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from types import FrameType
from urllib.parse import unquote, urlsplit

ROOTS = (Path("/opt/deskfork/web"), Path("/var/lib/deskfork/web"))
"""Recordings of the image, and those that a task's set-up brings."""
HOSTS = Path("/etc/hosts")
CERTIFICATE = Path("/etc/deskfork/web/certificate.pem")
PRIVATE_KEY = Path("/etc/deskfork/web/key.pem")
PORT = 443
REQUEST_TIMEOUT_S = 30.0
MARK = "# recorded web"
CONTENT_TYPES = {
    ".htm": "text/html",
    ".html": "text/html",
    ".xml": "text/xml",
    ".zip": "application/zip",
    ".txt": "text/plain",
}


def recorded_hosts(roots: Iterable[Path]) -> list[str]:
    """Return the names of the hosts of which there are recordings."""
    return sorted({folder.name for root in roots if root.is_dir() for folder in root.iterdir() if folder.is_dir()})


def find_page(roots: Iterable[Path], host: str, target: str) -> Path | None:
    """Return the file recorded for a request, or None."""
    path = PurePosixPath(unquote(urlsplit(target).path))
    if not host or "/" in host or ".." in host or ".." in path.parts:
        return None
    for root in roots:
        page = root / host / path.relative_to("/") if path.is_absolute() else root / host / path
        if page.is_file():
            return page
    return None


def with_hosts(text: str, names: Iterable[str]) -> str:
    """Return the text of a hosts file in which just `names` are recorded ones."""
    lines = [line for line in text.splitlines() if not line.endswith(MARK)]
    return "".join(f"{line}\n" for line in [*lines, *(f"127.0.0.1 {name} {MARK}" for name in names)])


def make_server(address: tuple[str, int], roots: tuple[Path, ...]) -> ThreadingHTTPServer:
    """Make a server of the pages below `roots`, listening at `address`, without TLS."""

    class Page(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = REQUEST_TIMEOUT_S

        def do_GET(self) -> None:
            self._answer(has_body=True)

        def do_HEAD(self) -> None:
            self._answer(has_body=False)

        def _answer(self, *, has_body: bool) -> None:
            host = self.headers.get("Host", "").partition(":")[0].lower()
            page = find_page(roots, host, self.path)
            content = page.read_bytes() if page else b"This page was not recorded.\n"
            self.send_response(HTTPStatus.OK if page else HTTPStatus.NOT_FOUND)
            # Of Project Gutenberg's pages, too, the real server does not say how they are encoded.
            kind = CONTENT_TYPES.get(page.suffix.lower(), "application/octet-stream") if page else "text/plain"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if has_body:
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            return

    return ThreadingHTTPServer(address, Page)


def tell_systemd(message: str) -> None:
    """Send a notification to systemd, if it started us."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
            connection.connect("\0" + address[1:] if address.startswith("@") else address)
            connection.send(message.encode("ascii"))


def main() -> None:
    """Serve until told to stop."""
    server = make_server(("127.0.0.1", PORT), ROOTS)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, PRIVATE_KEY)
    # The handshake is each connection's own thread's work: one that stalls must not keep others out.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit

    signal.signal(signal.SIGTERM, stop)
    HOSTS.write_text(with_hosts(HOSTS.read_text(encoding="utf-8"), recorded_hosts(ROOTS)), encoding="utf-8")
    try:
        tell_systemd("READY=1")
        server.serve_forever(poll_interval=3600)
    finally:
        HOSTS.write_text(with_hosts(HOSTS.read_text(encoding="utf-8"), []), encoding="utf-8")


if __name__ == "__main__":
    main()
