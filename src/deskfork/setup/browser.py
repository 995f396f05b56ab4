"""The guest's Chromium, driven over its debugging port from inside the guest.

Source: Chrome DevTools Protocol, HTTP endpoints (`/json/new`, `/json/list`, `/json/activate`, `/json/close`).
"""

import json
from dataclasses import dataclass
from urllib.parse import quote

from deskfork.core.errors import InfraError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.base import Guest
from deskfork.setup.command import run_command

MAX_LISTING_CHARS = 1024 * 1024
_SAFE_IN_QUERY = ":/?&=@,;+~"


@dataclass(frozen=True)
class Tab:
    """One page of the browser."""

    id: str
    url: str
    title: str


class Tabs:
    """The tabs of a browser whose debugging port is open."""

    def __init__(self, guest: Guest, port: int, deadline: Deadline) -> None:
        self._guest = guest
        self._base = f"http://127.0.0.1:{port}"
        self._deadline = deadline

    def is_reachable(self) -> bool:
        """Whether the debugging port answers."""
        probe = ["curl", "-sS", "--fail", "-m", "10", "-o", "/dev/null", f"{self._base}/json/version"]
        return self._guest.exec(probe, timeout_s=20.0).exit_code == 0

    def open(self, urls: tuple[str, ...]) -> None:
        """Open one tab for each URL, the last one in front; whether a page loads is not asked.

        Raises:
            InfraError: The debugging port did not take it.
        """
        if urls:
            self._curl("-X", "PUT", *(f"{self._base}/json/new?{quote(url, safe=_SAFE_IN_QUERY)}" for url in urls))

    def close(self, tab: Tab) -> None:
        """Close `tab`."""
        self._curl(f"{self._base}/json/close/{tab.id}")

    def list(self) -> tuple[Tab, ...]:
        """Return the open pages, the one used last first.

        Raises:
            InfraError: The debugging port did not answer with a list of pages.
        """
        listing = self._curl(f"{self._base}/json/list")
        try:
            entries = json.loads(listing[:MAX_LISTING_CHARS])
            return tuple(
                Tab(str(entry["id"]), str(entry["url"]), str(entry["title"]))
                for entry in entries
                if entry["type"] == "page"
            )
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InfraError(f"the browser's debugging port listed no pages: {listing[:80]!r}") from error

    def run(self, argv: tuple[str, ...]) -> None:
        """Run a program of the browser's side.

        Raises:
            InfraError: It failed.
        """
        run_command(self._guest, list(argv), self._deadline)

    def _curl(self, *arguments: str) -> str:
        return run_command(self._guest, ["curl", "-sS", "--fail", "-m", "30", *arguments], self._deadline)
