"""The viewer's server: loopback, one token in every path, nothing but this run's pages."""

import json
import secrets
import sys
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from deskfork.core.errors import ConfigError, DeskforkError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.viewer.answers import Answer, answer, opened_desktop
from deskfork.viewer.run import ViewedRun
from deskfork.viewer.visible import visible

_HOST = "127.0.0.1"
_IDLE_TIMEOUT_S = 60.0
_LOOK_EVERY_S = 1.0
_SIGN_EVERY_S = 15.0
"""A stream with nothing to tell says so this often: only by writing is it found out that nobody reads it any more."""
_MAX_FIELDS = 40
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        # noVNC's page, on a port of its own.
        f"frame-src http://{_HOST}:*",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class ViewerServer(ThreadingHTTPServer):
    """Serves the pages of one run to whoever knows its URL."""

    daemon_threads = True

    def __init__(self, run: ViewedRun, port: int) -> None:
        """Listen.

        Raises:
            OSError: The port cannot be had.
        """
        self.run = run
        self.token = secrets.token_hex(16)
        self.ending = Event()
        """Set to end the streams."""
        super().__init__((_HOST, port), _Handler)

    @property
    def url(self) -> str:
        """Where the table of trials is."""
        return f"http://{_HOST}:{self.server_port}/{self.token}/"

    def server_close(self) -> None:
        """Stop listening, and end the streams."""
        self.ending.set()
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what went wrong with a request on stderr, unless its reader has just gone away."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def open_viewer(run_dir: Path, *, port: int = 0) -> ViewerServer:
    """Open the viewer of a run: a context manager, whose `serve_forever` serves until it is interrupted.

    Args:
        run_dir: The run's directory.
        port: On loopback; 0 for any that is free.

    Raises:
        ConfigError: It is no run directory, or the port cannot be had.
    """
    run = ViewedRun(run_dir)
    try:
        return ViewerServer(run, port)
    except OSError as error:
        raise ConfigError(f"port {port} of {_HOST} cannot be had: {error.strerror or error}; try another") from error


class _Handler(BaseHTTPRequestHandler):
    server: ViewerServer
    protocol_version = "HTTP/1.1"
    server_version = "deskfork"
    sys_version = ""
    timeout = _IDLE_TIMEOUT_S

    def do_GET(self) -> None:
        """Answer with a page, JSON, a picture or a stream of changes."""
        if (asked := self._asked()) is None:
            return
        path, query = asked
        if path == "api/changes":
            self._stream(query)
        else:
            self._answer(lambda: answer(self.server.run, path, query))

    def do_POST(self) -> None:
        """Begin to serve a live desktop: the only request that does something."""
        self.close_connection = True
        if (asked := self._asked()) is not None:
            path, query = asked
            self._answer(lambda: opened_desktop(self.server.run, query) if path == "api/desktop" else None)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: stdout and stderr are for people."""

    def _asked(self) -> tuple[str, dict[str, str]] | None:
        """Return path and query of a request that may be answered; None if it was turned down."""
        parts = urlsplit(self.path)
        token, _, path = parts.path.removeprefix("/").partition("/")
        # Another name for this address is a page elsewhere that had its name's address changed to ours.
        names = {f"{name}:{self.server.server_port}" for name in (_HOST, "localhost")}
        if self.headers.get_all("Host", []) not in [[name] for name in names]:
            self._send(HTTPStatus.FORBIDDEN, _said("this is served to 127.0.0.1 only"))
        elif not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._send(HTTPStatus.NOT_FOUND, _said("not found"))
        else:
            with suppress(ValueError):
                return path, dict(parse_qsl(parts.query, max_num_fields=_MAX_FIELDS))
            self._send(HTTPStatus.BAD_REQUEST, _said("too many fields"))
        return None

    def _answer(self, make: Callable[[], Answer | None]) -> None:
        try:
            made = make()
        except DeskforkError as error:
            status = HTTPStatus.NOT_FOUND if isinstance(error, ConfigError) else HTTPStatus.SERVICE_UNAVAILABLE
            self._send(status, _said(str(error)))
            return
        if made is None:
            self._send(HTTPStatus.NOT_FOUND, _said("not found"))
        else:
            self._send(HTTPStatus.OK, made)

    def _send(self, status: HTTPStatus, made: Answer) -> None:
        self._begin(status, made.kind, "private, max-age=86400, immutable" if made.is_lasting else "no-store")
        self.send_header("Content-Length", str(len(made.content)))
        self.end_headers()
        self.wfile.write(made.content)

    def _begin(self, status: HTTPStatus, kind: str, caching: str) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Cache-Control": caching}.items():
            self.send_header(name, value)

    def _stream(self, query: dict[str, str]) -> None:
        """Tell of each change as it is found, until the reader goes away."""
        self.close_connection = True
        self._begin(HTTPStatus.OK, "text/event-stream", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        told = ""
        # A run whose files became unreadable has no more to tell, nor has a reader that went away.
        with suppress(ConnectionError, TimeoutError, DeskforkError):
            while not self.server.ending.is_set():
                known = told
                found = wait_until(
                    lambda: state if (state := self._state(query)) != known else None,  # noqa: B023  # asked at once
                    Deadline.after(_SIGN_EVERY_S),
                    interval_s=_LOOK_EVERY_S,
                )
                self.wfile.write(f"data: {found}\n\n".encode() if found else b":\n\n")
                told = found or told

    def _state(self, query: dict[str, str]) -> str:
        run = self.server.run
        state: dict[str, object] = {"version": run.version()}
        if key := query.get("at"):
            state["steps"], state["ended"] = run.progress(key)
        return json.dumps(state)


def _said(why: str) -> Answer:
    return Answer(json.dumps({"error": visible(why)}).encode(), "application/json")
