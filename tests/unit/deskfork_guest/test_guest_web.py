"""Guards the replay of the web: it answers what was recorded, nothing else, and takes its names back."""

import http.client
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from deskfork_guest.web import find_page, make_server, recorded_hosts, with_hosts


@pytest.fixture
def root(tmp_path: Path) -> Path:
    page = tmp_path / "web/www.example.org/files/1/a page.htm"
    page.parent.mkdir(parents=True)
    page.write_bytes("<p>Gr\u00fc\u00dfe</p>\r\n".encode())
    (tmp_path / "web/other.example.org").mkdir()
    (tmp_path / "secret").write_text("secret")
    return tmp_path / "web"


@pytest.fixture
def port(root: Path) -> Iterator[int]:
    server = make_server(("127.0.0.1", 0), (root / "none", root))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join(timeout=10)


def ask(port: int, path: str, host: str = "www.example.org", method: str = "GET") -> tuple[int, str | None, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, headers={"Host": host})
        reply = connection.getresponse()
        return reply.status, reply.getheader("Content-Type"), reply.read()
    finally:
        connection.close()


def test_a_recorded_page_comes_byte_for_byte_without_saying_its_encoding(port: int) -> None:
    status, kind, content = ask(port, "/files/1/a%20page.htm?from=x", host="WWW.example.org:443")
    assert (status, kind) == (200, "text/html")
    assert content == "<p>Gr\u00fc\u00dfe</p>\r\n".encode()


def test_a_head_request_gets_no_body(port: int) -> None:
    assert ask(port, "/files/1/a%20page.htm", method="HEAD") == (200, "text/html", b"")


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("/", "www.example.org"),
        ("/files/1", "www.example.org"),
        ("/files/1/a%20page.htm", "unknown.example.org"),
        ("/files/1/a%20page.htm", ""),
        ("/../../secret", "www.example.org"),
        ("/%2e%2e/%2e%2e/secret", "www.example.org"),
        ("//secret", ".."),
    ],
)
def test_nothing_else_is_answered(port: int, path: str, host: str) -> None:
    status, _, content = ask(port, path, host)
    assert (status, content) == (404, b"This page was not recorded.\n")


def test_a_name_cannot_lead_out_of_the_recordings(root: Path) -> None:
    assert find_page((root,), "a/b", "/x") is None
    assert find_page((root,), "..", "/secret") is None


def test_names_come_and_go_without_touching_the_others(root: Path) -> None:
    before = "127.0.0.1 localhost\n::1 localhost\n"
    names = recorded_hosts((root / "none", root))
    assert names == ["other.example.org", "www.example.org"]
    during = with_hosts(before, names)
    assert during.startswith(before)
    assert "127.0.0.1 www.example.org" in during
    assert with_hosts(during, names) == during
    assert with_hosts(during, []) == before
