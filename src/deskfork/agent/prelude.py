"""Cells of deskfork's own that run in the guest's kernel before an agent's; the first defines `final_answer` there."""

import re
from collections.abc import Mapping, Sequence

from deskfork.core.types import FINAL_ANSWER_MIME

STOPPED = "FinalAnswerGiven"
"""Name of the exception by which `final_answer` ends its cell; its text is the answer as JSON."""
MAX_ANSWER_CHARS = 64 * 1024
"""Length of the answer as JSON."""

_SOURCE = '''
def _deskfork_install():
    import builtins, json
    from IPython import get_ipython
    from IPython.display import publish_display_data

    class {stopped}(BaseException):
        pass

    def final_answer(answer=None):
        """End the task with this answer; anything that JSON cannot hold is given as its text."""
        try:
            text = json.dumps({{"answer": answer}}, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            text = json.dumps({{"answer": str(answer)}})
        if len(text) > {limit}:
            raise ValueError("final_answer: the answer is longer than {limit} characters; give a short summary")
        publish_display_data({{"{mime}": text}})
        raise {stopped}(text)

    def leave():
        raise SystemExit

    builtins.final_answer = final_answer
    shell = get_ipython()
    if shell is not None:
        # A cell may have taken the name for a variable: the next one finds the function again.
        shell.events.register("pre_run_cell", lambda *_: shell.user_ns.__setitem__("final_answer", final_answer))
        shell.ask_exit = leave  # exit() and quit() would end the kernel, not just the cell
_deskfork_install()
del _deskfork_install
'''

PRELUDE = _SOURCE.format(stopped=STOPPED, limit=MAX_ANSWER_CHARS, mime=FINAL_ANSWER_MIME)

_NO_GUI = """
def _deskfork_install():
    import os, sys
    from importlib.abc import MetaPathFinder
    refused = {modules!r}
    class NoGui(MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in refused:
                raise ImportError(f"{{name}} is refused: this action space runs code and cannot drive the desktop")
    for name in [name for name in sys.modules if name.partition(".")[0] in refused]:
        del sys.modules[name]
    sys.meta_path.insert(0, NoGui())
    for name in ("DISPLAY", "XAUTHORITY"):
        os.environ.pop(name, None)
_deskfork_install()
del _deskfork_install
"""
NO_GUI = _NO_GUI.format(
    modules=("Xlib", "mouse", "keyboard", "mouseinfo", "pyautogui", "pynput", "pyscreeze", "tkinter")
)
"""Takes the display from the kernel and from what it starts; what is refused by parsing is refused here once more."""

# Whichever function of PyAutoGUI a place came in by, its X11 module moves the pointer there by `_moveTo`.
_SCALE = """
def _deskfork_install(across, down):
    import pyautogui
    platform = pyautogui.platformModule
    position, size, move = platform._position, platform._size, platform._moveTo
    def shown(x, y):
        return round(x / across), round(y / down)
    platform._position = lambda: shown(*position())
    platform._size = lambda: shown(*size())
    platform._moveTo = lambda x, y: move(round(x * across), round(y * down))
_deskfork_install({across}, {down})
del _deskfork_install
"""


def scale_cell(across: float, down: float) -> str:
    """Return the cell after which PyAutoGUI's coordinates are those of a screen that many times smaller."""
    return _SCALE.format(across=float(across), down=float(down))


def marks_cell(marks: Mapping[int, tuple[int, int]]) -> str:
    """Return the cell that gives `mark_N` its centre."""
    return "".join(f"mark_{number} = ({x:d}, {y:d})\n" for number, (x, y) in marks.items())


_VERSIONS = """
def _deskfork_versions(names):
    import json
    from importlib import metadata
    found = {{}}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    print(json.dumps(found))
_deskfork_versions({names!r})
del _deskfork_versions
"""


def versions_cell(names: Sequence[str]) -> str:
    """Return the cell that prints, as a JSON object, the versions of those distributions that there are."""
    return _VERSIONS.format(names=tuple(names))


_OUR_OWN = re.compile(
    "|".join(
        (
            re.escape(PRELUDE),
            re.escape(NO_GUI),
            re.escape(_SCALE.format(across="@", down="@")).replace("@", r"[0-9.e+-]{1,30}"),
            re.escape(_VERSIONS.format(names="@")).replace("'@'", r"\([\w.,' -]{0,10000}\)"),
            r"(mark_\d{1,6} = \(\d{1,6}, \d{1,6}\)\n)+",
        )
    )
)


def is_our_own(cell: str) -> bool:
    """Whether a cell is one of these, word for word: a kernel that dies in it was not killed by the agent."""
    return _OUR_OWN.fullmatch(cell) is not None
