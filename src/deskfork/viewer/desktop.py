"""The live desktop of a trial that is at work: which sandbox it has, and the page that shows it."""

import re
from contextlib import suppress
from pathlib import Path
from threading import Lock
from urllib.parse import parse_qs, urlencode, urlsplit

from deskfork.core.errors import ConfigError
from deskfork.records.paths import AttemptPaths
from deskfork.sandbox.live import live_records, sandboxes_dir
from deskfork.sandbox.view import open_view

# The first line of a trial's log: written before anything of the guest's can be in it.
_FORKED = re.compile(r"^\S+ forked \S+ as (\S{1,64})$", re.MULTILINE)
_LOG_CHARS = 4096


def sandbox_of(paths: AttemptPaths) -> str:
    """Return the id of the sandbox that an attempt was given; empty as long as it has none."""
    with suppress(OSError), (paths.logs / "trial.log").open(encoding="utf-8", errors="replace") as stream:
        found = _FORKED.search(stream.read(_LOG_CHARS))
        return found[1] if found else ""
    return ""


class LiveDesktops:
    """The sandboxes of this machine that run."""

    def __init__(self, cache_dir: Path) -> None:
        self._cache_dir = cache_dir
        self._opening = Lock()

    def url(self, sandbox_id: str) -> str:
        """Return the URL of a page that shows a desktop, and takes neither keys nor clicks for it.

        Raises:
            ConfigError: No such sandbox runs on this machine, or noVNC is not installed.
            SandboxError: The page could not be served.
        """
        with self._opening:
            # Ids are compared as a whole: the log that this one was read from may not be of this machine.
            if sandbox_id not in [record.id for record in live_records(self._cache_dir) if record.kind == "sandbox"]:
                raise ConfigError(
                    f"sandbox {sandbox_id or '(none yet)'} has no screen on this machine to be shown live"
                )
            page = urlsplit(open_view(sandboxes_dir(self._cache_dir) / sandbox_id))
        # noVNC's plain page: the other has a menu in which it can be made to take keys and clicks.
        query = {"path": parse_qs(page.query)["path"][0], "scale": "true", "view_only": "true"}
        return f"{page.scheme}://{page.netloc}/vnc_lite.html?{urlencode(query)}"
