"""Guards who is answered: this machine's user who was told the URL, and nobody else; and with what."""

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from deskfork.core.errors import ConfigError
from deskfork.records.paths import RunPaths
from deskfork.records.recorder import TrialRecorder
from deskfork.viewer.answers import STATIC
from deskfork.viewer.server import ViewerServer, open_viewer
from viewed_runs import make_result, make_run, make_step, record

SOON_S = 20.0


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[ViewerServer]:
    run = make_run(tmp_path / "run", ["oracle"])
    record(run, "t", "oracle", [make_step(1)], make_result("t", "oracle"))
    with open_viewer(run.root) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join(SOON_S)


def ask(viewer: ViewerServer, path: str, *, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Ask for `path` as it is, below nothing."""
    connection = http.client.HTTPConnection("127.0.0.1", viewer.server_port, timeout=SOON_S)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def below(viewer: ViewerServer, path: str = "") -> str:
    return f"/{viewer.token}/{path}"


def test_pages_scripts_and_json_come_with_a_strict_policy(viewer: ViewerServer) -> None:
    for path in [*STATIC, "api/trials", "api/trial?at=t/oracle/0/attempt-0", "api/step?at=t/oracle/0/attempt-0&step=1"]:
        status, headers, body = ask(viewer, below(viewer, path))
        assert (status, bool(body)) == (200, True), path
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"


def test_every_file_that_a_page_names_is_served(viewer: ViewerServer) -> None:
    for page in ("", "trial"):
        text = ask(viewer, below(viewer, page))[2].decode()
        named = [part.split('"')[0] for part in text.replace('src="', 'href="').split('href="')[1:]]
        assert {name for name in named if name.startswith("static/")} <= set(STATIC)
        assert "<style" not in text
        assert text.count("<script") == text.count('<script type="module" src="static/')


@pytest.mark.parametrize(
    "path",
    [
        "/", "/favicon.ico", "/static/viewer.css", "//", f"/{'0' * 32}/", f"/{'0' * 32}/api/trials", "/%2e%2e/",
        "/é/".encode().decode("latin-1"),
    ],
)  # fmt: skip
def test_without_the_token_there_is_nothing(viewer: ViewerServer, path: str) -> None:
    status, _, body = ask(viewer, quote(path, safe="/%"))
    assert status == 404
    assert viewer.token.encode() not in body


@pytest.mark.parametrize(
    "path",
    [
        "static/", "static", "static/..", "static/../server.py", "static/%2e%2e/server.py", "../", "api", "run.yaml",
        "screen", "screen?at=t/oracle/0/attempt-0&name=../result.json", "screen?at=../..&name=x", "api/step?at=&step=1",
        "api/trials?offset=-1", "api/trials?sort=x", "api/step?at=t/oracle/0/attempt-0&step=99", "api/desktop",
    ],
)  # fmt: skip
def test_what_is_not_there_is_not_found(viewer: ViewerServer, path: str) -> None:
    status, _, body = ask(viewer, below(viewer, path))
    assert status == 404
    assert set(json.loads(body)) == {"error"}


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1", "evil.example:{port}", "127.0.0.1:{port}.evil"])
def test_another_name_for_this_address_is_turned_down(viewer: ViewerServer, host: str) -> None:
    assert ask(viewer, below(viewer), Host=host.format(port=viewer.server_port))[0] == 403


def test_only_loopback_is_listened_on(viewer: ViewerServer) -> None:
    assert viewer.server_address[0] == "127.0.0.1"
    assert ask(viewer, below(viewer), Host=f"localhost:{viewer.server_port}")[0] == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "HEAD"])
def test_other_methods_are_not_known(viewer: ViewerServer, method: str) -> None:
    assert ask(viewer, below(viewer), method=method)[0] == 501


def test_a_trial_that_has_ended_has_no_desktop(viewer: ViewerServer) -> None:
    status, _, body = ask(viewer, below(viewer, "api/desktop?at=t/oracle/0/attempt-0"), method="POST")
    told = json.loads(body)
    assert (status, told["url"], "has ended" in told["why"]) == (200, None, True)


def test_screens_are_pictures_that_may_be_kept(viewer: ViewerServer) -> None:
    (step,) = json.loads(ask(viewer, below(viewer, "api/trial?at=t/oracle/0/attempt-0"))[2])["steps"]
    status, headers, body = ask(viewer, below(viewer, f"screen?at=t/oracle/0/attempt-0&name={step['screen']}"))
    assert (status, headers["Content-Type"], body[:4]) == (200, "image/png", b"\x89PNG")
    assert "immutable" in headers["Cache-Control"]


def test_changes_are_told_as_they_come(viewer: ViewerServer, tmp_path: Path) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", viewer.server_port, timeout=SOON_S)
    connection.request("GET", below(viewer, "api/changes"))
    stream = connection.getresponse()

    def told() -> dict[str, object]:
        while not (line := stream.readline()).startswith(b"data: "):
            assert line, "the stream ended"
        found: dict[str, object] = json.loads(line[6:])
        return found

    first = told()
    with TrialRecorder(RunPaths(tmp_path / "run").attempt("new", "oracle", 0, 0)):
        second = told()
    assert int(str(second["version"])) > int(str(first["version"]))
    connection.close()


def test_a_port_that_is_taken_is_said(viewer: ViewerServer, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"port {viewer.server_port} "):
        open_viewer(tmp_path / "run", port=viewer.server_port)


def test_tokens_are_not_used_twice(viewer: ViewerServer, tmp_path: Path) -> None:
    with open_viewer(tmp_path / "run") as other:
        assert urlsplit(other.url).path != urlsplit(viewer.url).path
