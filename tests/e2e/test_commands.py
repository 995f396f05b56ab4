"""Guards what a person does with a sandbox by hand: start, list, watch, enter, stop; and that nothing is left then."""

import subprocess
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from websocket import WebSocket, WebSocketException, create_connection

from deskfork.core.config import cache_dir
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.live import find_record
from deskfork.sandbox.provider import VmProvider
from deskfork.sandbox.shell import shell_command
from left_behind import left_of

Deskfork = Callable[..., Any]
SOON_S = 30.0


def bridge(url: str, token: str | None = None) -> WebSocket:
    """Connect as the page at `url` does, or with another token."""
    parts = urlsplit(url)
    (path,) = parse_qs(parts.query)["path"]
    path = path if token is None else f"websockify?token={token}"
    return create_connection(f"ws://{parts.netloc}/{path}", timeout=SOON_S, subprotocols=["binary"])


def test_a_sandbox_by_hand(provider: VmProvider, deskfork: Deskfork) -> None:
    started = deskfork("sandbox", "start", "--provider", provider.name, "--template", "desktop", "--json")
    assert started.code == 0, started.err
    sandbox_id = started.json()["id"]
    try:
        listed = deskfork("sandbox", "list", "--json")
        (record,) = (record for record in listed.json() if record["id"] == sandbox_id)
        assert (record["provider"], record["template"], record["is_held"]) == (provider.name, "desktop", True)

        viewed = deskfork("sandbox", "view", sandbox_id[:7], "--json")
        assert viewed.code == 0, viewed.err
        url = viewed.json()["url"]
        with urllib.request.urlopen(url, timeout=SOON_S) as page:
            assert b"noVNC" in page.read()
        watching = bridge(url)
        assert watching.recv().startswith(b"RFB 003.")
        watching.close()
        with pytest.raises((WebSocketException, OSError)):
            bridge(url, "0" * 32).recv()

        command = shell_command(cache_dir(), find_record(cache_dir(), sandbox_id))
        entered = subprocess.run(
            [*command, "id -un; pwd"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )
        assert (entered.returncode, entered.stdout) == (0, "user\n/home/user\n"), entered.stderr
    finally:
        stopped = deskfork("sandbox", "stop", sandbox_id)
    assert stopped.code == 0, stopped.err
    assert wait_until(lambda: not left_of(sandbox_id), Deadline.after(SOON_S)), left_of(sandbox_id)
    again = deskfork("sandbox", "stop", sandbox_id)
    assert (again.code, again.err.count("\n")) == (2, 1)
