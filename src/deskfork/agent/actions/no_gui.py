"""Refuses code that names the desktop: the action space `code` has none.

A static check finds what is written out, not what is computed; the display itself is kept from the kernel elsewhere.
"""

import ast
import re

from deskfork.agent.actions.cells import Magic, read_cell
from deskfork.agent.actions.literals import Names, lists, texts
from deskfork.agent.actions.refusal import Refused
from deskfork.agent.actions.shell_words import Command, after_option, commands, runs

GUI_MODULES = frozenset(
    {"pyautogui", "pynput", "mouse", "keyboard", "Xlib", "tkinter", "turtle", "pygetwindow", "pywinctl", "mss", "wx"}
    | {"pyscreeze", "pymsgbox", "pytweening", "mouseinfo", "pyperclip", "pyatspi", "dogtail", "ewmh", "xcffib", "gi"}
    | {"PyQt5", "PyQt6", "PySide2", "PySide6", "evdev", "uinput", "xdo", "autopy", "pyxhook"}
)
GUI_PROGRAMS = frozenset(
    {"xdotool", "wmctrl", "xte", "scrot", "xwd", "xclip", "xsel", "xinput", "xset", "xrandr", "xvkbd", "ydotool"}
    | {"wtype", "dotool", "maim", "gnome-screenshot", "xwininfo", "xprop", "xdpyinfo", "xkill", "xev", "xmacroplay"}
)
DISPLAY_VARIABLES = frozenset({"DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY"})
_SHELL_CALLS = frozenset(
    {"run", "call", "check_call", "check_output", "Popen", "getoutput", "getstatusoutput", "system", "popen", "spawn"}
    | {"create_subprocess_shell", "create_subprocess_exec", "spawnlp", "spawnvp", "execlp", "execvp", "execl", "execv"}
    | {"posix_spawn", "posix_spawnp", "spawnl", "spawnv"}
)
_IMPORT_CALLS = frozenset({"import_module", "__import__", "run_module"})
_ENVIRON_CALLS = frozenset({"getenv", "putenv", "unsetenv"})
_LOOKUPS = frozenset({"get", "pop", "setdefault"})
_CODE_CALLS = frozenset({"exec", "eval", "compile"})
_OTHER_LINE_ENDS = str.maketrans(dict.fromkeys("\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", "\n"))
_DEPTH = 5


def check_code(code: str) -> None:
    """Refuse a cell that uses PyAutoGUI or its like, runs a program that drives windows, or touches the display.

    What does not parse is let through: the kernel says what is wrong with it.

    Raises:
        Refused: It names something of the desktop; the text says what.
    """
    _check(code, _DEPTH)
    # Python takes these for part of a comment where IPython begins a new line, even behind a backslash.
    if (broken := code.translate(_OTHER_LINE_ENDS)) != code:
        _check(broken, _DEPTH)
        _check(broken.replace("\\\n", "\n"), _DEPTH)


def _refuse(what: str) -> None:
    raise Refused(f"{what} is not available: in this action space there is code and a shell, but no desktop")


def _check(code: str, depth: int) -> None:
    if depth <= 0:
        return
    cell = read_cell(code)
    for script in cell.scripts:
        _check_script(script, depth - 1)
    for magic in cell.magics:
        _check_magic(magic, depth - 1)
    if cell.tree is not None:
        _Python(cell.tree, depth).check()
    elif "\n" in code.strip():
        # Something in it is not Python to us, and may be IPython's: each line is looked at by itself.
        for line in code.splitlines():
            _check(line.strip(), depth - 1)
    else:
        _check_unreadable_line(code.strip(), depth - 1)


def _check_unreadable_line(line: str, depth: int) -> None:
    """Check a line that is no Python, and so fails unless IPython makes something of it."""
    # It runs a lone line as a magic, %rehashx makes magics of programs, and `!` may stand behind `x = ` or a prompt.
    for script in [line, *line.split("!")[1:]]:
        if (words := script.split()) and words[0] in GUI_PROGRAMS:
            _refuse(f"the program {words[0]}")
        if script is not line:
            _check_script(script, depth)
    if imported := re.search(r"\b(?:import|from)[ \t]+(\w+)", line):
        _check_module(imported[1])


def _check_script(script: str, depth: int) -> None:
    for command in commands(script):
        _check_command(command, depth)


def _check_command(command: Command, depth: int) -> None:
    for run in runs(command):
        for name in run.assigned():
            if name in DISPLAY_VARIABLES:
                _refuse(f"setting {name}")
        if words := run.argv():
            _check_program(words[0].rpartition("/")[2], words[1:], run.document, depth)


def _check_program(program: str, arguments: list[str], document: str, depth: int) -> None:
    if program in GUI_PROGRAMS or (program == "import" and "-window" in arguments):
        _refuse(f"the program {program}")
    if program.startswith(("python", "ipython", "pypy")):
        for code in [document, *after_option(arguments, "c")]:
            _check(code, depth - 1)
        for module in after_option(arguments, "m"):
            _check_module(module)


def _check_module(name: str) -> None:
    if name.split(".")[0] in GUI_MODULES or name == "PIL.ImageGrab":
        _refuse(f"the module {name}")


def _check_magic(magic: Magic, depth: int) -> None:
    name, words = magic.name, magic.rest.replace("=", " ").split()
    if name in ("env", "set_env") and words[:1] and words[0] in DISPLAY_VARIABLES:
        _refuse(f"the variable {words[0]}")
    elif name in GUI_PROGRAMS:
        _refuse(f"the program {name}")
    elif name in (",", ";", "/", "?"):
        for word in re.split(r"[\s,;/?()'\"]+", magic.rest):
            _check_module(word)
    elif name == "run":
        for module in after_option(words, "m"):
            _check_module(module)
    elif name == "alias":
        _check_script(magic.rest.partition(" ")[2], depth)
    elif name in ("writefile", "file") and words:
        _check_written(words[-1], magic.body, depth)


def _check_written(path: str, text: str, depth: int) -> None:
    """Check a file that may be run later: its kind says by what."""
    if path.endswith(".py"):
        _check(text, depth)
    elif path.endswith(".sh"):
        _check_script(text, depth)


class _Python:
    """Looks at one cell's Python."""

    def __init__(self, tree: ast.Module, depth: int) -> None:
        self._nodes = list(ast.walk(tree))
        names = Names(self._nodes)
        self._values, self._last, self._is_environ = names.values, names.last, names.is_environ
        self._depth = depth

    def check(self) -> None:
        for node in self._nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    _check_module(alias.name)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    _check_module(node.module or "")
                    _check_module(f"{node.module}.{alias.name}")
            elif isinstance(node, ast.Subscript) and self._is_environ(node.value):
                self._check_variable(node.slice)
            elif isinstance(node, ast.Dict) and any(
                key is None and self._is_environ(value) for key, value in zip(node.keys, node.values, strict=True)
            ):
                self._check_environment(node)
            elif isinstance(node, ast.Call):
                self._check_call(node)

    def _check_call(self, call: ast.Call) -> None:
        name = self._last(call.func)
        first = call.args[0] if call.args else None
        base = call.func.value if isinstance(call.func, ast.Attribute) else None
        if name in _IMPORT_CALLS and first is not None:
            for text in texts(first, self._values):
                _check_module(text)
        elif name in _CODE_CALLS and first is not None and (base is None or self._last(base) == "builtins"):
            for text in texts(first, self._values):
                _check(text, self._depth - 1)
        elif name in _ENVIRON_CALLS or (name in _LOOKUPS and base is not None and self._is_environ(base)):
            self._check_variable(first)
        elif name in ("run_line_magic", "run_cell_magic", "run_cell", "magic"):
            self._check_called_magic(name, call)
        elif (name == "update" and base is not None and self._is_environ(base)) or (
            name == "dict" and first is not None and self._is_environ(first)
        ):
            self._check_environment(call)
            for argument in call.args:
                self._check_environment(argument)
        if name in _SHELL_CALLS:
            self._check_shell_call(call)

    def _check_called_magic(self, name: str, call: ast.Call) -> None:
        parts = [next(texts(argument, self._values), "") for argument in call.args] or [""]
        if name == "run_cell_magic":
            code = f"%%{' '.join(parts[:2])}\n" + "".join(parts[2:3])
        else:
            code = parts[0] if name == "run_cell" else f"%{' '.join(parts)}"
        _check(code, self._depth - 1)

    def _check_shell_call(self, call: ast.Call) -> None:
        name = self._last(call.func)
        given: list[ast.expr] = [
            keyword.value for keyword in call.keywords if keyword.arg in ("args", "cmd", "command")
        ]
        given += call.args[:1]
        if name.startswith(("exec", "spawn", "posix_spawn", "create_subprocess_exec")):
            given = [*call.args, ast.List(call.args[int(name.startswith("spawn")) :], ast.Load())]
        for argument in given:
            for text in texts(argument, self._values):
                _check_script(text, self._depth - 1)
            for words in lists(argument, self._values):
                _check_command(Command(words), self._depth - 1)
        for keyword in call.keywords:
            if keyword.arg == "env":
                variable = keyword.value.id if isinstance(keyword.value, ast.Name) else ""
                for value in [keyword.value, *self._values.get(variable, [])]:
                    self._check_environment(value)

    def _check_environment(self, given: ast.expr) -> None:
        """Check a dict that is to be some program's environment."""
        if isinstance(given, ast.Dict):
            for key in given.keys:
                self._check_variable(key)
        elif isinstance(given, ast.Call):
            for keyword in given.keywords:
                if keyword.arg in DISPLAY_VARIABLES:
                    _refuse(f"the variable {keyword.arg}")

    def _check_variable(self, key: ast.expr | None) -> None:
        if isinstance(key, ast.Constant) and key.value in DISPLAY_VARIABLES:
            _refuse(f"the variable {key.value}")
