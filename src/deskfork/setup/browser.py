"""The guest's Chromium, driven over its debugging port from inside the guest.

Source: Chrome DevTools Protocol, HTTP endpoints (`/json/new`, `/json/list`, `/json/activate`, `/json/close`).
"""

import json
from dataclasses import dataclass
from urllib.parse import quote

from deskfork.core.errors import InfraError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import Guest
from deskfork.setup.command import run_command

MAX_LISTING_CHARS = 1024 * 1024
POLL_S = 1.0
"""Each look costs an emulated guest about 0.1 s of its CPU, which what is waited for needs itself."""
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

    def activate(self, tab: Tab) -> None:
        """Bring `tab` to the front."""
        self._curl(f"{self._base}/json/activate/{tab.id}")

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

    def wait_for(self, url_prefix: str, title_start: str) -> Tab:
        """Return the tab at `url_prefix` as soon as its title starts with `title_start`.

        Raises:
            InfraError: That did not happen before the deadline.
        """

        def look() -> Tab | None:
            if self._deadline.has_passed:
                return None
            found = (tab for tab in self.list() if tab.url.startswith(url_prefix))
            return next((tab for tab in found if tab.title.startswith(title_start)), None)

        seen = wait_until(look, self._deadline, interval_s=POLL_S)
        if seen is None:
            raise InfraError(f"no tab at {url_prefix} was titled {title_start!r} in {self._deadline.timeout_s:.0f} s")
        return seen

    def _curl(self, *arguments: str) -> str:
        return run_command(self._guest, ["curl", "-sS", "--fail", "-m", "30", *arguments], self._deadline)
