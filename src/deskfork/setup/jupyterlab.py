"""JupyterLab, which the template may have open already: serving the Desktop folder, in a tab of the browser.

Source: xlang-ai/Spider2-V, evaluation_examples (`launch` of `jupyter lab FOLDER_OR_FILE` in conda's environment).
"""

import math
import shlex
from pathlib import PurePosixPath

from deskfork.sandbox.base import GUEST_DESKTOP
from deskfork.tasks.steps import CONDA_SCRIPT, LaunchStep, SetupStep

SHOW = "/opt/deskfork/bin/show-in-jupyterlab"
SAVE_TIMEOUT_S = 15.0
LOG = "/tmp/deskfork-launch.log"
Argv = tuple[str, ...]
_ACTIVATED = ["source", CONDA_SCRIPT, "&&", "conda", "activate", "jupyter", "&&"]
# There is nothing in the template's server to end in good order. A server's jpserver-PID.json names its process.
_END_SERVER = (
    'for note in "$HOME"/.local/share/jupyter/runtime/jpserver-*.json; do '
    'id=${note##*/jpserver-}; kill -KILL "${id%.json}"; rm -f -- "$note" "${note%.json}-open.html"; done'
)
# The browser's page is led to the new server rather than opened anew: BROWSER is what a server opens it with.
_REPLACE_SERVER = f'{_END_SERVER}; BROWSER=/bin/true setsid -f -- "$@" </dev/null >>{LOG} 2>&1'
_SHOW_NEW = f'name=${{1##*/}}; [ -d "$1" ] && name=; exec {SHOW} "$name" "$2" load'
_CLOSE_PAGE = (
    "curl -sS --fail -m 30 http://127.0.0.1:{port}/json/list | "
    'jq -r \'.[] | select(.type == "page" and (.url | startswith("http://localhost:8888/"))) | .id\' | '
    "while read -r id; do curl -sS --fail -m 30 -o /dev/null http://127.0.0.1:{port}/json/close/$id; done"
)


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


def starts_jupyterlab(step: SetupStep) -> bool:
    """Whether `step` is a plain start of JupyterLab."""
    return isinstance(step, LaunchStep) and jupyterlab_target(step.command) is not None


def inside_desktop(target: PurePosixPath) -> str | None:
    """Return `target` as the template's server names it (empty: its folder), or None when that does not serve it."""
    if ".." in target.parts or not target.is_relative_to(GUEST_DESKTOP):
        return None
    inside = target.relative_to(GUEST_DESKTOP).as_posix()
    return "" if inside == "." else inside


def show(inside: str, timeout_s: float) -> Argv:
    """Return the command that shows the template's JupyterLab, with a file open in it unless `inside` is empty.

    It ends when the page has been painted.
    """
    return (SHOW, inside, str(math.ceil(timeout_s)))


def replace_server(command: Argv, target: PurePosixPath, timeout_s: float) -> tuple[Argv, Argv]:
    """Return the commands after which the page shows `target` as `command`, a start of JupyterLab, serves it.

    As upstream has it: one server, on the usual port; for a file it serves the folder in which the file lies.
    """
    return (
        ("bash", "-c", _REPLACE_SERVER, "launch", *command),
        ("bash", "-c", _SHOW_NEW, "show", str(target), str(math.ceil(timeout_s))),
    )


def remove(debugging_port: int) -> Argv:
    """Return the command that ends the template's JupyterLab and closes its page: the task wants a browser alone."""
    return ("bash", "-c", f"{_CLOSE_PAGE.format(port=debugging_port)}; {_END_SERVER}")


def wait_saved() -> Argv:
    """Return the command that waits, a short while, until what was asked to be saved in the page is saved."""
    return (SHOW, "", str(math.ceil(SAVE_TIMEOUT_S)), "saved")
