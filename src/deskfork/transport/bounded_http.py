"""The HTTP client for the APIs of models: one deadline for a whole exchange, and a bound on what it may bring.

httpx's own timeouts are for one read each: a server that sends a byte a second is waited for without end, in the
headers too, which is why the bound is set below httpx, on the connection. An answer is read whole before it is handed
on; none of our callers streams. The name of a host is resolved by the system, whose own timeouts apply.
"""

import functools
import socket
import ssl
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from deskfork.core.errors import ConfigError, TransportError
from deskfork.core.waiting import Deadline

MAX_BODY_BYTES = 64 * 1024 * 1024
DEFAULT_TIMEOUT_S = 180.0
"""For a request that brings no timeout of its own."""
_CHUNK_BYTES = 16 * 1024
_DEADLINE = "deskfork.deadline"
_FAILURES = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)
_current: ContextVar[Deadline] = ContextVar("deadline of this thread's exchange")


class BoundedTransport(httpx.BaseTransport):
    """Sends requests and reads their answers within bounds; threads may share it.

    The `read` timeout of a request, in seconds, is the time for all of it, redirects included. Proxies are those of
    the environment, as httpx takes them. Answers are asked for, and taken, uncompressed: a small answer may else
    unpack to any size.

    Raises:
        TransportError: From `handle_request`: the answer is larger than the bound, or compressed.
        httpx.TimeoutException: From `handle_request`: the time is over.
        httpx.TransportError: From `handle_request`: the server was not reached, or speaks no HTTP.
    """

    def __init__(self, *, max_bytes: int = MAX_BODY_BYTES) -> None:
        """Make the pools of connections.

        Args:
            max_bytes: Of an answer's body.

        Raises:
            ConfigError: The environment names a proxy of a kind that is not supported.
        """
        self._max_bytes = max_bytes
        self._proxies = _environment_proxies()
        context = httpx.create_ssl_context()
        self._pools = {url: _pool(url, context) for url in {None, *self._proxies.values()}}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Do one exchange."""
        # A redirected request takes over the extensions of the first, and so its deadline.
        timeout_s = request.extensions.get("timeout", {}).get("read") or DEFAULT_TIMEOUT_S
        deadline = request.extensions.setdefault(_DEADLINE, Deadline.after(timeout_s))
        token = _current.set(deadline)
        try:
            return self._exchange(request)
        except _FAILURES as exc:
            raise getattr(httpx, type(exc).__name__)(str(exc)) from exc
        finally:
            _current.reset(token)

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        for pool in self._pools.values():
            pool.close()

    def _exchange(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        where = f"{url.scheme}://{url.host}"  # a path or query may hold a key
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"accept-encoding"]
        reply = self._pools[self._proxy_of(url)].handle_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=[*headers, (b"Accept-Encoding", b"identity")],
                content=request.stream,
                extensions=request.extensions,
            )
        )
        try:
            answer = httpx.Response(reply.status, headers=reply.headers)
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise TransportError(f"{request.method} {where}: a compressed answer, which was not asked for")
            body = bytearray()
            for chunk in reply.iter_stream():
                body += chunk
                if len(body) > self._max_bytes:
                    raise TransportError(f"{request.method} {where}: an answer of more than {self._max_bytes} bytes")
        finally:
            reply.close()
        return httpx.Response(reply.status, headers=reply.headers, content=bytes(body))

    def _proxy_of(self, url: httpx.URL) -> str | None:
        if not self._proxies or proxy_bypass(url.host):
            return None
        return self._proxies.get(url.scheme) or self._proxies.get("all")


class SharedTransport(httpx.BaseTransport):
    """The process's one transport, for clients that are closed by libraries which think that they own it."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Do one exchange, as `BoundedTransport` does it."""
        return _shared_transport().handle_request(request)


@functools.cache
def shared_client() -> httpx.Client:
    """Return the process's one bounded client: trials share its connections, and none closes them."""
    return httpx.Client(transport=SharedTransport(), timeout=DEFAULT_TIMEOUT_S, follow_redirects=True)


@functools.cache
def _shared_transport() -> BoundedTransport:
    return BoundedTransport()


def _environment_proxies() -> dict[str, str]:
    found = {scheme: url for scheme, url in getproxies().items() if scheme in ("http", "https", "all") and url}
    found = {scheme: url if "://" in url else f"http://{url}" for scheme, url in found.items()}
    for scheme, url in found.items():
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"{scheme}_proxy is {url.partition('://')[0]}://..., only http and https proxies will do")
    return found


def _pool(proxy_url: str | None, context: ssl.SSLContext) -> httpcore.ConnectionPool:
    # Without a limit no request waits for another's connection.
    options: dict[str, Any] = {"ssl_context": context, "max_connections": None, "keepalive_expiry": 30.0}
    options["network_backend"] = _DeadlineBackend()
    if proxy_url is None:
        return httpcore.ConnectionPool(**options)
    proxy = httpx.Proxy(proxy_url)
    address = httpcore.URL(
        scheme=proxy.url.raw_scheme, host=proxy.url.raw_host, port=proxy.url.port, target=proxy.url.raw_path
    )
    return httpcore.HTTPProxy(proxy_url=address, proxy_auth=proxy.raw_auth, **options)


def _left(expired: type[httpcore.TimeoutException]) -> float:
    """Return the seconds that this exchange has left; there is always some, as 0 would mean not to wait at all."""
    deadline = _current.get()
    if deadline.has_passed:
        raise expired(f"no end in {deadline.timeout_s:g} s")
    return max(deadline.remaining_s, 0.001)


class _DeadlineStream(httpcore.NetworkStream):
    """A connection on which each wait ends with the exchange that it is for; the timeouts given are not used."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # In pieces, as httpcore's own stream takes its timeout anew for each part that the peer accepts.
        for start in range(0, len(buffer), _CHUNK_BYTES):
            self._inner.write(buffer[start : start + _CHUNK_BYTES], _left(httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left_s = _left(httpcore.ConnectTimeout)
        return _DeadlineStream(self._inner.start_tls(ssl_context, server_hostname, left_s))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections; all addresses of a host share the exchange's one deadline."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as exc:
            raise httpcore.ConnectError(f"{host}: {exc}") from exc
        failure = httpcore.ConnectError(f"{host} has no address")
        for address in dict.fromkeys(str(entry[4][0]) for entry in found):
            left_s = _left(httpcore.ConnectTimeout)
            try:
                return _DeadlineStream(
                    httpcore.SyncBackend().connect_tcp(address, port, left_s, local_address, socket_options)
                )
            except httpcore.ConnectError as exc:
                failure = exc
        raise failure
