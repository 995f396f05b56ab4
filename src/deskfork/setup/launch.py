"""Programs that a task wants running on the desktop.

Source: xlang-ai/Spider2-V, desktop_env/controllers/setup.py (`_launch_setup`), desktop_env/server/main.py
(`launch_app`).
"""

from deskfork.core.errors import InfraError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import Guest
from deskfork.setup.command import run_command
from deskfork.setup.jupyterlab import LOG

POLL_S = 0.5
"""Each look costs an emulated guest some of its CPU, which what is waited for needs itself."""
_START = (
    'command -v -- "$1" >/dev/null || { echo "there is no program $1" >&2; exit 127; }; '
    f'setsid -f -- "$@" </dev/null >>{LOG} 2>&1'
)
# A server writes jpserver-PID.json once it listens, and removes it at its end.
_COUNT_SERVERS = 'set -- "$HOME"/.local/share/jupyter/runtime/jpserver-*.json; [ -e "$1" ] && echo $# || echo 0'


def start(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the guest command that starts `command` and leaves it running; it fails when there is no such program."""
    return ("bash", "-c", _START, "launch", *command)


def count_servers(guest: Guest, deadline: Deadline) -> int:
    """Return how many JupyterLab servers listen.

    Raises:
        InfraError: The guest did not tell.
    """
    counted = run_command(guest, ["bash", "-c", _COUNT_SERVERS], deadline).strip()
    if not counted.isdecimal():
        raise InfraError(f"JupyterLab's servers could not be counted: {counted[:80]!r}")
    return int(counted)


def wait_for_server(guest: Guest, before: int, deadline: Deadline) -> None:
    """Wait until there are more JupyterLab servers than `before`.

    Raises:
        InfraError: None came before the deadline.
    """

    def has_started() -> bool:
        return not deadline.has_passed and count_servers(guest, deadline) > before

    if not wait_until(has_started, deadline, interval_s=POLL_S):
        raise InfraError(f"no JupyterLab server listened within {deadline.timeout_s:.0f} s")


def wait_for_window(guest: Guest, title: str, deadline: Deadline) -> None:
    """Wait until there is a window whose title contains `title`.

    Raises:
        InfraError: None came before the deadline.
    """

    def has_window() -> bool:
        return any(title in window.title for window in guest.desktop().windows)

    if not wait_until(has_window, deadline, interval_s=POLL_S):
        raise InfraError(f"no window titled {title!r} was there within {deadline.timeout_s:.0f} s")
