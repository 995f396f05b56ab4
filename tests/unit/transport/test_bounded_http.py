"""Guards: no model's server, however slow, chatty or broken, holds a trial beyond its call's time or fills memory."""

import gzip
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpcore
import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from transport_services import Peer, Talk

from deskfork.core.errors import ConfigError, TransportError
from deskfork.transport.bounded_http import BoundedTransport, shared_client

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
SLACK_S = 5.0


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def served() -> Iterator[Callable[[Talk], str]]:
    peers: list[Peer] = []

    def serve(talk: Talk) -> str:
        peers.append(Peer(talk))
        return f"http://{peers[-1].endpoint}"

    yield serve
    for peer in peers:
        peer.close()


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with closing(
        httpx.Client(transport=BoundedTransport(max_bytes=1 << 20), timeout=10.0, follow_redirects=True)
    ) as opened:
        yield opened


def receive(accepted: socket.socket) -> bytes:
    """Take one request without a body, or with one that fits in what came in."""
    taken = b""
    while b"\r\n\r\n" not in taken:
        more = accepted.recv(65536)
        if not more:
            raise ConnectionError
        taken += more
    return taken


def says(*parts: bytes, pause_s: float = 0.0) -> Talk:
    def talk(accepted: socket.socket) -> None:
        receive(accepted)
        over = threading.Event()
        for part in parts:
            accepted.sendall(part)
            over.wait(pause_s)
        accepted.shutdown(socket.SHUT_WR)
        accepted.recv(1)

    return talk


def test_an_answer_comes_whole(served: Callable[[Talk], str], client: httpx.Client) -> None:
    reply = client.post(served(says(OK + b"Content-Length: 5\r\n\r\nhe", b"llo", pause_s=0.01)), json={"a": 1})
    assert (reply.status_code, reply.text, reply.headers["content-type"]) == (200, "hello", "text/plain")
    chunked = OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    assert client.get(served(says(chunked))).content == b"abc"


def test_a_connection_is_used_again(client: httpx.Client) -> None:
    def talk(accepted: socket.socket) -> None:
        for _ in range(3):
            assert b"Accept-Encoding: identity" in receive(accepted)
            accepted.sendall(OK + b"Content-Length: 2\r\n\r\nhi")

    with closing(Peer(talk)) as peer:
        assert [client.get(f"http://{peer.endpoint}").text for _ in range(3)] == ["hi"] * 3
        assert peer.connections == 1


@pytest.mark.parametrize(
    "talk",
    [
        says(*[b"x" for _ in OK], pause_s=0.2),
        says(*(bytes([byte]) for byte in OK * 9), pause_s=0.05),
        says(OK, *(b"X-%d: y\r\n" % number for number in range(200)), pause_s=0.05),
        says(*[b"HTTP/1.1 100 Continue\r\n\r\n"] * 200, pause_s=0.05),
        says(OK + b"Content-Length: 1000\r\n\r\n", *[b"x"] * 200, pause_s=0.05),
        says(OK + b"Transfer-Encoding: chunked\r\n\r\n", *[b"1\r\nx\r\n"] * 200, pause_s=0.05),
        says(OK + b"\r\n", *[b"x"] * 200, pause_s=0.05),
        lambda accepted: accepted.recv(1 << 20) and threading.Event().wait(20),
    ],
    ids=["no http", "status line", "headers", "informational", "body", "chunks", "until close", "silence"],
)
def test_a_dribbling_server_is_held_to_one_deadline(
    served: Callable[[Talk], str], client: httpx.Client, talk: Talk
) -> None:
    begun_at = time.monotonic()
    with pytest.raises((httpx.TimeoutException, httpx.RemoteProtocolError)):
        client.get(served(talk), timeout=0.5)
    assert time.monotonic() - begun_at < 0.5 + SLACK_S


def test_a_server_that_takes_nothing_is_held_to_the_deadline(
    served: Callable[[Talk], str], client: httpx.Client
) -> None:
    begun_at = time.monotonic()
    with pytest.raises(httpx.WriteTimeout):
        client.post(served(lambda accepted: threading.Event().wait(20)), content=b"x" * (64 << 20), timeout=0.5)
    assert time.monotonic() - begun_at < 0.5 + SLACK_S


@pytest.mark.parametrize("head", [b"Content-Length: 1073741824\r\n\r\n", b"\r\n"])
def test_an_endless_answer_ends_at_the_bound(served: Callable[[Talk], str], client: httpx.Client, head: bytes) -> None:
    sent = 0

    def talk(accepted: socket.socket) -> None:
        nonlocal sent
        receive(accepted)
        accepted.sendall(OK + head)
        while sent < 1 << 30:
            sent += accepted.send(b"x" * 65536)

    with pytest.raises(TransportError, match="more than 1048576 bytes"):
        client.get(served(talk))
    assert sent < 32 << 20


def test_a_compressed_answer_is_not_unpacked(served: Callable[[Talk], str], client: httpx.Client) -> None:
    bomb = gzip.compress(bytes(32 << 20))
    talk = says(OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb), bomb)
    with pytest.raises(TransportError, match="compressed"):
        client.get(served(talk))


def test_an_error_names_no_key(served: Callable[[Talk], str], client: httpx.Client) -> None:
    talk = says(OK + b"Content-Length: 2000000\r\n\r\n" + bytes(2_000_000))
    with pytest.raises(TransportError) as caught:
        client.get(f"{served(talk)}/v1?key=s3cret")
    assert "s3cret" not in str(caught.value)


def test_redirects_share_the_deadline(client: httpx.Client) -> None:
    def talk(accepted: socket.socket) -> None:
        while True:
            receive(accepted)
            threading.Event().wait(0.3)
            accepted.sendall(b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n")

    begun_at = time.monotonic()
    with closing(Peer(talk)) as peer, pytest.raises(httpx.TimeoutException):
        client.get(f"http://{peer.endpoint}", timeout=1.0)
    assert time.monotonic() - begun_at < 1.0 + 2.0


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("http://127.0.0.1:1", httpx.ConnectError),
        ("http://no-such-host.invalid", httpx.ConnectError),
        ("ftp://127.0.0.1", httpx.UnsupportedProtocol),
    ],
)
def test_a_server_that_is_not_there_is_told_as_httpx_tells_it(
    client: httpx.Client, url: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        client.get(url)


def test_garbage_is_told_as_httpx_tells_it(served: Callable[[Talk], str], client: httpx.Client) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(served(says(b"SSH-2.0-OpenSSH_9.2\r\n")))
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(served(says(OK + b"Content-Length: 9\r\n\r\nhalf")))


def test_every_error_of_httpcore_has_a_namesake_in_httpx() -> None:
    bases = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError)
    kinds = [kind for kind in vars(httpcore).values() if isinstance(kind, type) and issubclass(kind, bases)]
    assert len(kinds) >= 12
    for kind in [*kinds, httpcore.ProxyError, httpcore.UnsupportedProtocol]:
        assert issubclass(getattr(httpx, kind.__name__), httpx.TransportError)


def test_a_thread_is_not_held_to_anothers_deadline(served: Callable[[Talk], str], client: httpx.Client) -> None:
    slow = served(says(OK + b"Content-Length: 4\r\n\r\n", b"s", b"l", b"o", b"w", pause_s=0.3))
    silent = served(lambda accepted: accepted.recv(1 << 20) and threading.Event().wait(20))
    failures: list[Exception] = []

    def give_up() -> None:
        try:
            client.get(silent, timeout=0.2)
        except httpx.TimeoutException as error:
            failures.append(error)

    thread = threading.Thread(target=give_up)
    thread.start()
    assert client.get(slow, timeout=20).text == "slow"
    thread.join(20)
    assert len(failures) == 1


def test_a_proxy_of_the_environment_is_used(served: Callable[[Talk], str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def talk(accepted: socket.socket) -> None:
        asked.append(receive(accepted))
        accepted.sendall(OK + b"Content-Length: 5\r\n\r\nproxy")

    monkeypatch.setenv("http_proxy", served(talk).replace("http://", "http://me:pass@"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with closing(httpx.Client(transport=BoundedTransport())) as client:
        assert client.get("http://api.invalid/v1").text == "proxy"
        direct = served(says(OK + b"Content-Length: 6\r\n\r\ndirect"))
        assert client.get(direct).text == "direct"
    assert asked[0].startswith(b"GET http://api.invalid/v1 HTTP/1.1\r\n")
    assert b"proxy-authorization: basic" in asked[0].lower()


def test_a_socks_proxy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:1080")
    with pytest.raises(ConfigError, match="all_proxy is socks5"):
        BoundedTransport()


def test_closing_the_shared_client_leaves_the_others_theirs(served: Callable[[Talk], str]) -> None:
    url = served(says(OK + b"Content-Length: 2\r\n\r\nhi"))
    assert shared_client() is shared_client()
    assert shared_client().get(url).text == "hi"


def test_tls_is_verified_and_held_to_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = _self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def talk(accepted: socket.socket) -> None:
        with context.wrap_socket(accepted, server_side=True) as wrapped:
            wrapped.recv(65536)
            wrapped.sendall(OK + b"Content-Length: 3\r\n\r\ntls")

    with closing(Peer(talk)) as peer, closing(Peer(lambda accepted: threading.Event().wait(20))) as silent:
        with closing(httpx.Client(transport=BoundedTransport())) as client, pytest.raises(httpx.ConnectError):
            client.get(f"https://localhost:{peer.endpoint.port}")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with closing(httpx.Client(transport=BoundedTransport())) as client:
            assert client.get(f"https://localhost:{peer.endpoint.port}", timeout=20).text == "tls"
            begun_at = time.monotonic()
            with pytest.raises(httpx.TimeoutException):
                client.get(f"https://localhost:{silent.endpoint.port}", timeout=0.5)
            assert time.monotonic() - begun_at < 0.5 + SLACK_S


def _self_signed(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject_name=name, issuer_name=name, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths
