"""Which kind of action a step was: through the desktop, through code, or both."""

import ast
import re
import threading
import warnings

from deskfork.records.trajectory import ActionClass

_GUI_MODULES = frozenset({"pyautogui", "pynput", "pyperclip", "mouse", "keyboard"})
_NEUTRAL_CALLS = frozenset({"print", "range", "len", "str", "int", "float", "enumerate", "final_answer"})
_NEUTRAL_STATEMENTS = (
    ast.Import,
    ast.ImportFrom,
    ast.Expr,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.For,
    ast.While,
    ast.If,
    ast.Pass,
    ast.Break,
    ast.Continue,
)
_SHELL_LINE = re.compile(r"^[ \t]*[!%]", re.MULTILINE)
_warning_filters = threading.Lock()


class ActionClassifier:
    """Classifies an agent's cells in order: names that one cell imports are known in the next."""

    def __init__(self) -> None:
        self._gui_names = set(_GUI_MODULES)
        self._time_names = {"time"}
        self._sleep_names: set[str] = set()

    def classify(self, code: str | None) -> ActionClass:
        """Return the class of one cell.

        `gui` if it drives the desktop and besides only imports, waits, prints, loops and assigns plain values; `mixed`
        if it does more than that; `code` if it never drives the desktop; `none` if it is empty or not Python.
        Never raises.
        """
        if code is None or not code.strip():
            return "none"
        tree, has_shell = _parse(code)
        if tree is None:
            return "code" if has_shell else "none"
        if not tree.body and not has_shell:
            return "none"
        drives_gui, does_more = False, has_shell
        for node in ast.walk(tree):
            self._learn(node)
            if isinstance(node, ast.stmt):
                does_more |= not isinstance(node, _NEUTRAL_STATEMENTS)
            elif isinstance(node, ast.Call):
                is_gui = self._is_gui(node.func)
                drives_gui |= is_gui
                does_more |= not is_gui and not self._is_neutral(node.func)
        if not drives_gui:
            return "code"
        return "mixed" if does_more else "gui"

    def _learn(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root, name = alias.name.split(".")[0], alias.asname or alias.name.split(".")[0]
                if root in _GUI_MODULES:
                    self._gui_names.add(name)
                elif root == "time":
                    self._time_names.add(name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            root = node.module.split(".")[0]
            names = {alias.asname or alias.name for alias in node.names}
            if root in _GUI_MODULES:
                self._gui_names |= names
            elif root == "time":
                self._sleep_names |= {alias.asname or alias.name for alias in node.names if alias.name == "sleep"}

    def _is_gui(self, called: ast.expr) -> bool:
        while isinstance(called, ast.Attribute):
            called = called.value
        return isinstance(called, ast.Name) and called.id in self._gui_names

    def _is_neutral(self, called: ast.expr) -> bool:
        if isinstance(called, ast.Name):
            return called.id in _NEUTRAL_CALLS or called.id in self._sleep_names
        return (
            isinstance(called, ast.Attribute)
            and called.attr == "sleep"
            and isinstance(called.value, ast.Name)
            and called.value.id in self._time_names
        )


def _parse(code: str) -> tuple[ast.Module | None, bool]:
    """Parse a cell; lines for the shell or for IPython are left out and reported instead."""
    has_shell = _SHELL_LINE.search(code) is not None
    if has_shell:
        code = "\n".join("pass" if _SHELL_LINE.match(line) else line for line in code.split("\n"))
    try:
        # The filters are the process's, and other trials may be at this line too.
        with _warning_filters, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code), has_shell
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None, has_shell
