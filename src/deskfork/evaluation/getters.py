"""Reading what is to be judged out of the guest, and keeping every byte of it. No judging here."""

import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from deskfork.core.errors import EvaluationError, GuestFileError
from deskfork.evaluation.evidence import MAX_FILE_BYTES, Evidence, KeptFile, keep
from deskfork.sandbox.base import Guest
from deskfork.tasks.checks import ActiveTab, GuestFile, HostFile, ScriptOutput

MAX_OUTPUT_CHARS = 4 * 1024 * 1024
MAX_LISTING_CHARS = 1024 * 1024
MAX_URL_CHARS = 8192
FETCH_TIMEOUT_S = 120.0
_TABS = ["curl", "-sS", "--fail", "-m", "20", "http://127.0.0.1:1337/json/list"]
_COULD_NOT_CONNECT = 7
"""curl's exit code."""


@dataclass(frozen=True)
class Kept:
    """Where one check's evidence goes."""

    check: int
    directory: Path

    def path(self, name: str) -> Path:
        """Return the host path for a file called `name` in the guest."""
        return self.directory / f"{self.check}-{name}"

    def read(self, source: object, path: Path, also: tuple[KeptFile, ...] = ()) -> Evidence:
        """Return evidence of something that was read into `path`."""
        return Evidence(check=self.check, source=str(source), state="read", file=keep(path), also=also)

    def missing(self, source: object, detail: str, also: tuple[KeptFile, ...] = ()) -> Evidence:
        """Return evidence that there is nothing that could be judged."""
        return Evidence(check=self.check, source=str(source), state="missing", detail=detail, also=also)

    def unread(self, source: object, detail: str) -> Evidence:
        """Return what stands for evidence where we failed."""
        return Evidence(check=self.check, source=str(source), state="unread", detail=detail)


def read_guest_file(getter: GuestFile, guest: Guest, kept: Kept) -> Evidence:
    """Fetch a file of the guest.

    Raises:
        InfraError: The guest could not be asked.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/getters/file.py, `get_vm_file` (a missing file is None there).
    """
    also = tuple(keep(kept.path(path.name)) for path in getter.also if not _fetch(path, guest, kept))
    if problem := _fetch(getter.path, guest, kept):
        return kept.missing(getter.path, problem, also)
    return kept.read(getter.path, kept.path(getter.path.name), also)


def _fetch(path: PurePosixPath, guest: Guest, kept: Kept) -> str:
    """Fetch one file; return why there is none, or an empty string."""
    target = kept.path(path.name)
    try:
        guest.get(path, target, max_bytes=MAX_FILE_BYTES, timeout_s=FETCH_TIMEOUT_S)
    except GuestFileError as error:
        return f"no such file in the guest, or none that can be judged: {error}"
    if target.is_symlink() or not target.is_file():
        return f"no such file in the guest: {path} is no regular file"
    return ""


def read_script_output(getter: ScriptOutput, guest: Guest, root: Path, kept: Kept) -> Evidence:
    """Run a script of the task in the guest, and keep what it printed.

    As upstream, what counts is the stdout, whatever the exit code.

    Raises:
        InfraError: The guest could not be asked.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/getters/general.py, `get_vm_script_output`.
    """
    source, name = root / getter.source, getter.source.name
    try:
        script = source.read_bytes()
    except OSError as error:
        return kept.unread(getter.target, f"evaluation script {source} cannot be read: {error.strerror}")
    guest.put(script, getter.target)
    result = guest.exec(["/bin/bash", str(getter.target)], timeout_s=getter.timeout_s)
    stdout, stderr = kept.path(f"{name}.stdout"), kept.path(f"{name}.stdout.stderr")
    stdout.write_text(result.stdout, encoding="utf-8", errors="backslashreplace")
    stderr.write_text(result.stderr, encoding="utf-8", errors="backslashreplace")
    if result.timed_out:
        return kept.unread(getter.target, f"evaluation script {name} did not end within {getter.timeout_s:.0f} s")
    if len(result.stdout) > MAX_OUTPUT_CHARS:
        return kept.missing(
            getter.target, f"evaluation script {name} printed more than {MAX_OUTPUT_CHARS // 1024**2} MiB"
        )
    return kept.read(getter.target, stdout, (keep(stderr),))


def read_active_tab(getter: ActiveTab, guest: Guest, kept: Kept) -> Evidence:
    """Ask the guest's browser which address it shows.

    A browser that is not there is a fact about the guest; one that is and does not answer is our failure. Upstream
    reads the address bar, puts `getter.scheme` before it and loads the page again; Chrome names the address itself.

    Raises:
        InfraError: The guest could not be asked.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/getters/chrome.py, `get_active_tab_info`.
    """
    listed = guest.exec(_TABS, timeout_s=FETCH_TIMEOUT_S)
    if listed.exit_code == _COULD_NOT_CONNECT and not _has_browser(guest):
        return kept.missing("browser", "no browser is open in the guest")
    if listed.exit_code or listed.timed_out:
        return kept.unread("browser", f"the browser did not say what it shows: {listed.stderr.strip()[-200:]}")
    try:
        pages = [page for page in json.loads(listed.stdout[:MAX_LISTING_CHARS]) if page["type"] == "page"]
        url = str(pages[0]["url"]) if pages else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return kept.unread("browser", f"the browser's list of tabs is not understood: {listed.stdout[:200]!r}")
    if url is None or len(url) > MAX_URL_CHARS:
        return kept.missing("browser", "no tab is open" if url is None else "the tab's address is too long to be one")
    path = kept.path("active-tab.url")
    path.write_text(url, encoding="utf-8", errors="backslashreplace")
    return kept.read("browser", path)


def _has_browser(guest: Guest) -> bool:
    return any("chrom" in window.wm_class.lower() for window in guest.desktop().windows)


def read_host_file(getter: HostFile, root: Path) -> bytes:
    """Return what is in a gold file.

    Raises:
        EvaluationError: It is missing or too large.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/getters/file.py, `get_local_file`.
    """
    path = root / getter.path
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise EvaluationError(f"gold file {path} is larger than {MAX_FILE_BYTES // 1024**2} MiB")
        return path.read_bytes()
    except OSError as error:
        raise EvaluationError(f"gold file {path} cannot be read: {error.strerror}") from error
