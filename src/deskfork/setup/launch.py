"""Programs that a task wants running on the desktop, and JupyterLab, which the template may already have open.

Source: xlang-ai/Spider2-V, desktop_env/controllers/setup.py (`_launch_setup`), desktop_env/server/main.py
(`launch_app`).
"""

import shlex
from pathlib import PurePosixPath

from deskfork.core.errors import InfraError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import GUEST_DESKTOP, Guest
from deskfork.setup.browser import POLL_S, Tab, Tabs
from deskfork.setup.command import run_command
from deskfork.tasks.schema import CONDA_SCRIPT, LaunchStep

LAB_URL = "http://localhost:8888/lab"
TITLE_CHARS = 12
"""JupyterLab 4 titles its page with the open file's name, of which it shows this many characters when it is long."""
_LOG = "/tmp/deskfork-launch.log"
_ACTIVATED = ["source", CONDA_SCRIPT, "&&", "conda", "activate", "jupyter", "&&"]
_START = (
    'command -v -- "$1" >/dev/null || { echo "there is no program $1" >&2; exit 127; }; '
    f'setsid -f -- "$@" </dev/null >>{_LOG} 2>&1'
)
# A server writes jpserver-PID.json once it listens, and removes it at its end.
_COUNT_SERVERS = 'set -- "$HOME"/.local/share/jupyter/runtime/jpserver-*.json; [ -e "$1" ] && echo $# || echo 0'


def jupyterlab_target(command: tuple[str, ...]) -> PurePosixPath | None:
    """Return what `command` opens in JupyterLab, or None when it is not just a start of JupyterLab in env jupyter."""
    words: list[str] = list(command)
    if len(words) == 3 and words[0] in ("bash", "/bin/bash") and words[1] == "-c":
        try:
            words = shlex.split(words[2])
        except ValueError:
            return None
    if words[: len(_ACTIVATED)] == _ACTIVATED:
        words = words[len(_ACTIVATED) :]
    if len(words) != 3 or words[:2] != ["jupyter", "lab"] or words[2].startswith("-"):
        return None
    return PurePosixPath(words[2])


def is_already_served(target: PurePosixPath | None, opened: frozenset[str]) -> bool:
    """Whether the template's JupyterLab, which serves the Desktop, is what opening `target` would have given."""
    return (
        target is not None
        and {"jupyterlab", "browser"} <= opened
        and ".." not in target.parts
        and target.is_relative_to(GUEST_DESKTOP)
    )


def show_in_jupyterlab(target: PurePosixPath, tabs: Tabs) -> None:
    """Bring the template's JupyterLab to the front, with `target` open in it.

    Raises:
        InfraError: The browser did not obey, or the page did not come before the deadline.
    """
    inside = target.relative_to(GUEST_DESKTOP).as_posix()
    pages = tabs.list()
    labs = [tab for tab in pages if tab.url.startswith(LAB_URL)]
    if inside == ".":
        if labs:
            tabs.activate(labs[0])
        else:
            tabs.open((LAB_URL,))
        return
    # Two pages on one JupyterLab workspace make the second move to another and load twice: close the first before,
    # unless it is the browser's last page, whose end would end the browser.
    keeps_browser_open = len(labs) < len(pages)
    if keeps_browser_open:
        _close_all(tabs, labs)
    url = f"{LAB_URL}/tree/{inside}"
    tabs.open((url,))
    if not keeps_browser_open:
        _close_all(tabs, labs)
    tabs.wait_for(LAB_URL, target.name[:TITLE_CHARS])


def launch(step: LaunchStep, guest: Guest, deadline: Deadline) -> None:
    """Start a program and leave it running; wait for what can be seen of it.

    JupyterLab has started when one more server listens; a step with `window` when that window is there. Of other
    programs upstream waits for nothing either.

    Raises:
        InfraError: There is no such program, or what was waited for did not come before the deadline.
    """
    starts_server = jupyterlab_target(step.command) is not None
    before = _servers(guest, deadline) if starts_server else 0
    run_command(guest, ["bash", "-c", _START, "launch", *step.command], deadline)

    def has_started() -> bool:
        return not deadline.has_passed and _servers(guest, deadline) > before

    if starts_server and not wait_until(has_started, deadline, interval_s=POLL_S):
        raise InfraError(f"no JupyterLab server listened within {deadline.timeout_s:.0f} s")
    if step.window is not None:
        title = step.window
        seen = wait_until(lambda: _has_window(guest, title), deadline, interval_s=POLL_S)
        if not seen:
            raise InfraError(f"no window titled {title!r} was there within {deadline.timeout_s:.0f} s")


def _close_all(tabs: Tabs, pages: list[Tab]) -> None:
    for tab in pages:
        tabs.close(tab)


def _servers(guest: Guest, deadline: Deadline) -> int:
    counted = run_command(guest, ["bash", "-c", _COUNT_SERVERS], deadline).strip()
    if not counted.isdecimal():
        raise InfraError(f"JupyterLab's servers could not be counted: {counted[:80]!r}")
    return int(counted)


def _has_window(guest: Guest, title: str) -> bool:
    return any(title in window.title for window in guest.desktop().windows)
