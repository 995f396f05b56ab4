"""One kept-alive HTTP connection to a guest, bounded in time and in bytes.

`http.client` on a `DeadlineSocket` rather than httpx: a hostile guest that drips its headers byte by byte is held to
the request's one deadline, and TCP_QUICKACK is set before each receive.
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


@dataclass(frozen=True)
class HttpReply:
    """What a guest's service answered."""

    status: int
    body: bytes


class HttpClient:
    """Sends requests to one endpoint, one after the other, over one connection."""

    def __init__(self, endpoint: TcpEndpoint) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None
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

        Raises:
            TransportError: No answer within `deadline`, or one larger than `max_bytes`, or one that is not HTTP.
        """
        with self._lock:
            is_reused = self._connection is not None
            try:
                return self._exchange(method, path, headers, deadline, payload, max_bytes)
            except (OSError, http.client.HTTPException, ValueError) as exc:
                self._drop()
                is_stale = isinstance(exc, (ConnectionError, http.client.RemoteDisconnected))
                if not (is_reused and is_stale and method == "GET"):
                    raise TransportError(f"{method} {self._endpoint}{path}: {type(exc).__name__}: {exc}") from exc
            try:
                return self._exchange(method, path, headers, deadline, payload, max_bytes)
            except (OSError, http.client.HTTPException, ValueError) as exc:
                self._drop()
                raise TransportError(f"{method} {self._endpoint}{path}: {type(exc).__name__}: {exc}") from exc

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        with self._lock:
            self._drop()

    def _exchange(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        deadline: Deadline,
        payload: object,
        max_bytes: int,
    ) -> HttpReply:
        connection = self._connect(deadline)
        body = None if payload is None else json.dumps(payload).encode()
        sent = {"Accept-Encoding": "identity", **headers}
        if body is not None:
            sent["Content-Type"] = "application/json"
        connection.request(method, path, body, sent)
        reply = connection.getresponse()
        received = reply.read(max_bytes + 1)
        if len(received) > max_bytes:
            raise ValueError(f"answer larger than {max_bytes} bytes")
        if reply.length:
            raise ValueError(f"answer ended {reply.length} bytes early")
        if reply.will_close:
            self._drop()
        return HttpReply(reply.status, received)

    def _connect(self, deadline: Deadline) -> http.client.HTTPConnection:
        if self._connection is None or self._socket is None:
            self._socket = open_deadline_socket(self._endpoint, deadline)
            self._connection = http.client.HTTPConnection(self._endpoint.host, self._endpoint.port)
            self._connection.sock = cast(socket.socket, self._socket)
        self._socket.deadline = deadline
        return self._connection

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._connection is not None:
            self._connection.close()
        self._connection = self._socket = None
