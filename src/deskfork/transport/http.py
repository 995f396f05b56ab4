"""One kept-alive HTTP connection to a guest, bounded in time and in bytes.

On a `DeadlineSocket` rather than by httpx: a hostile guest that drips its headers byte by byte is held to the request's
one deadline, TCP_QUICKACK is set before each receive, and a request leaves as one segment, so that a guest which has
just been forked wakes up for it once.
"""

import http.client
import json
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from deskfork.core.errors import TransportError
from deskfork.core.waiting import Deadline
from deskfork.transport.endpoint import DeadlineSocket, TcpEndpoint, open_deadline_socket

_FAILURES = (OSError, http.client.HTTPException, ValueError)


@dataclass(frozen=True)
class HttpReply:
    """What a guest's service answered."""

    status: int
    body: bytes


class HttpClient:
    """Sends requests to one endpoint, one after the other, over one connection. Threads may share it."""

    def __init__(self, endpoint: TcpEndpoint) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._socket: DeadlineSocket | None = None

    def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        deadline: Deadline,
        *,
        payload: object = None,
        max_bytes: int = 1 << 20,
    ) -> HttpReply:
        """Send one request and return its answer, whatever its status.

        A GET whose kept-alive connection turns out to be closed is sent once more on a new one; a POST never is, as the
        first may have had its effect.

        Args:
            method: GET or POST.
            path: With the query, if any; already quoted.
            headers: Further header fields.
            deadline: For the request as a whole.
            payload: Sent as JSON, if not None.
            max_bytes: A longer answer is an error.

        Raises:
            TransportError: No answer within `deadline`, or one larger than `max_bytes`, or one that is not HTTP.
        """
        body = b"" if payload is None else json.dumps(payload).encode()
        with self._lock:
            is_reused = self._socket is not None
            try:
                return self._exchange(method, path, headers, body, deadline, max_bytes)
            except ConnectionError as exc:
                self._drop()
                if not (is_reused and method == "GET"):
                    raise self._error(method, path, exc) from exc
            except _FAILURES as exc:
                self._drop()
                raise self._error(method, path, exc) from exc
            try:
                return self._exchange(method, path, headers, body, deadline, max_bytes)
            except _FAILURES as exc:
                self._drop()
                raise self._error(method, path, exc) from exc

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        with self._lock:
            self._drop()

    def _exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, deadline: Deadline, max_bytes: int
    ) -> HttpReply:
        connected = self._connected(deadline)
        fields = {"Host": str(self._endpoint), **headers}
        if body:
            fields["Content-Type"] = "application/json"
        if body or method != "GET":
            fields["Content-Length"] = str(len(body))
        connected.sendall(request_head(method, path, fields) + body)
        reply = http.client.HTTPResponse(cast(socket.socket, connected), method=method)
        try:
            reply.begin()
            received = reply.read(max_bytes + 1)
            if len(received) > max_bytes:
                raise ValueError(f"answer larger than {max_bytes} bytes")
            if reply.length:
                raise ValueError(f"answer ended {reply.length} bytes early")
        finally:
            reply.close()
        if reply.will_close:
            self._drop()
        return HttpReply(reply.status, received)

    def _connected(self, deadline: Deadline) -> DeadlineSocket:
        if self._socket is None:
            self._socket = open_deadline_socket(self._endpoint, deadline)
        self._socket.deadline = deadline
        return self._socket

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _error(self, method: str, path: str, exc: Exception) -> TransportError:
        return TransportError(f"{method} http://{self._endpoint}{path}: {type(exc).__name__}: {exc}")


def request_head(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    """Return the request line and header fields of an HTTP/1.1 request, up to and with the empty line.

    Raises:
        ValueError: A line break, or something beyond Latin-1, in any of them.
    """
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("line break in an HTTP header")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
