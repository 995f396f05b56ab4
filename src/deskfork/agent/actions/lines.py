"""What each line of an agent's code does: drive the desktop, run programs, touch files, wait, or compute."""

import ast
from collections import Counter
from collections.abc import Iterator

from deskfork.agent.actions.cells import Cell, read_cell
from deskfork.records.trajectory import ActionClass, LineClass

_GUI = frozenset({"pyautogui", "pynput", "pyperclip", "mouse", "keyboard"})
_ORDINARY_WORDS = frozenset({"mouse", "keyboard"})
_WAITS = frozenset({"time.sleep", "asyncio.sleep", "pyautogui.sleep", "pyautogui.countdown"})
_SHELL_MODULES = frozenset({"subprocess", "pexpect", "pty", "sh"})
_SHELL = frozenset(
    {"os.system", "os.popen", "os.startfile", "get_ipython().system", "get_ipython().getoutput"}
    | {f"os.{verb}{form}" for verb in ("exec", "spawn") for form in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")}
    | {"asyncio.create_subprocess_shell", "asyncio.create_subprocess_exec"}
)
_SHELL_MAGICS = frozenset({"pip", "conda", "mamba", "micromamba", "script", "perl", "ruby", "alias", "run", "cd"})
_FILE_MODULES = frozenset({"shutil", "glob", "zipfile", "tarfile"})
_FILE = frozenset(
    {"open", "csv.reader", "csv.writer", "csv.DictReader", "csv.DictWriter", "os.open", "json.dump", "json.load"}
    | {f"{module}.{verb}" for module in ("pickle", "yaml", "joblib", "torch", "toml") for verb in ("dump", "load")}
    | {f"os.{verb}" for verb in ("rename", "replace", "remove", "unlink", "mkdir", "makedirs", "rmdir", "removedirs")}
    | {f"os.{verb}" for verb in ("listdir", "scandir", "walk", "symlink", "link", "chmod", "truncate")}
    | {f"{module}.open" for module in ("io", "codecs", "gzip", "bz2", "lzma", "PIL.Image", "Image")}
    | {f"{module}.{verb}" for module in ("numpy", "np", "torch") for verb in ("save", "load", "fromfile")}
    | {"yaml.safe_load", "yaml.safe_dump", "nbformat.read", "nbformat.write", "plt.imread", "plt.imsave"}
)
_FILE_METHODS = frozenset(
    {"read_text", "write_text", "read_bytes", "write_bytes", "unlink", "rmdir", "mkdir", "touch", "iterdir", "rglob"}
    | {"savefig", "savetxt", "loadtxt", "genfromtxt", "savez", "savez_compressed", "imread", "imwrite", "writelines"}
    | {"readlines", "to_csv", "to_excel", "to_parquet", "to_pickle", "to_feather", "to_hdf", "to_stata"}
    | {f"read_{form}" for form in ("csv", "json", "excel", "parquet", "pickle", "table", "feather", "hdf", "fwf")}
)
_HANDLE_METHODS = frozenset({"read", "readline", "write", "seek", "truncate", "close", "flush"})
_FILE_MAGICS = frozenset({"writefile", "file", "save", "load", "store", "notebook"})
_NEUTRAL_CALLS = frozenset({"print", "range", "len", "str", "int", "float", "enumerate", "final_answer"})
_NEUTRAL = (ast.Import, ast.ImportFrom, ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)
_NEUTRAL += (ast.Pass, ast.Break, ast.Continue)  # type: ignore[assignment]
_BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


class LineClassifier:
    """Classes the lines of an agent's cells, in order: names that one cell imports are known in the next.

    A line is a simple statement, however many rows it takes, or one for the shell or a magic; the head of a loop or
    block is one only if it does something itself, as `with open(...)` does. Comments and empty rows are none. What does
    several things at once counts as the first of gui, shell, file, wait, code.

    The thesis's "PyAutoGUI line ratio" is the count of gui over the sum of all counts, imports included.
    """

    def __init__(self) -> None:
        # What a name stands for, as a dotted path; names that nothing was learned of stand for themselves.
        self._paths: dict[str, str] = {name: "" for name in _ORDINARY_WORDS}
        self._files: set[str] = set()

    def count(self, code: str | None) -> dict[LineClass, int]:
        """Return how many lines of each class a cell has, classes without a line left out. Never raises."""
        return dict(Counter(kind for kind, _ in self._lines(code)))

    def classify(self, code: str | None) -> ActionClass:
        """Return the class that a cell's lines agree on, waiting and neutral lines agreeing with any. Never raises.

        Neutral are imports, prints, heads of blocks and assignments that call nothing; a cell of nothing else is code.
        """
        lines = list(self._lines(code))
        kinds = {kind for kind, is_neutral in lines if not is_neutral}
        if len(kinds) > 1:
            kinds.discard("wait")
        if not kinds:
            return "code" if lines else "none"
        return kinds.pop() if len(kinds) == 1 else "mixed"

    def _lines(self, code: str | None) -> Iterator[tuple[LineClass, bool]]:
        """Yield each line's class, and whether the line is neutral."""
        cell = read_cell(code) if code else Cell(None)
        for script in cell.scripts:
            rows = (row.strip() for row in script.split("\n"))
            yield from [("shell", False) for row in rows if row and not row.startswith("#")]
        for magic in cell.magics:
            if magic.name in _FILE_MAGICS:
                yield "file", False
            else:
                yield ("shell", False) if magic.name in _SHELL_MAGICS else ("code", True)
        pending: list[ast.AST] = list(reversed(cell.tree.body)) if cell.tree else []
        while pending:
            node = pending.pop()
            pending += reversed([child for name in _BODIES for child in _inner(node, name)])
            if isinstance(node, ast.stmt):
                yield from self._statement(node)

    def _statement(self, node: ast.stmt) -> Iterator[tuple[LineClass, bool]]:
        self._learn(node)
        parts = list(_own_parts(node))
        kind = self._kind(parts)
        if isinstance(node, (*_BLOCKS, *_DEFINITIONS)):
            if kind != "code":
                yield kind, False
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield "code", True
        else:
            calls = [part for part in parts if isinstance(part, ast.Call)]
            is_plain = isinstance(node, _NEUTRAL) and all(self._path(call.func) in _NEUTRAL_CALLS for call in calls)
            yield kind, kind == "code" and is_plain

    def _kind(self, parts: list[ast.AST]) -> LineClass:
        """Return what an expression does, from all of its parts."""
        paths = {self._path(part.func) for part in parts if isinstance(part, ast.Call)}
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        waits = bool(paths & _WAITS)
        # pyautogui.sleep names pyautogui, and yet only waits.
        drives = sum(self._paths.get(name, name).split(".")[0] in _GUI for name in names)
        if drives > sum(path in _WAITS and path.startswith("pyautogui.") for path in paths):
            return "gui"
        if any(path in _SHELL or path.split(".")[0] in _SHELL_MODULES for path in paths):
            return "shell"
        if any(self._is_file(path) for path in paths):
            return "file"
        return "wait" if waits else "code"

    def _is_file(self, path: str) -> bool:
        base, _, last = path.rpartition(".")
        if path in _FILE or base.split(".")[0] in _FILE_MODULES or last in _FILE_METHODS:
            return True
        return (last in _HANDLE_METHODS and base in self._files) or (last == "open" and base.endswith("Path()"))

    def _path(self, called: ast.expr) -> str:
        """Return what is called as a dotted path, such as `pandas.read_csv` or `get_ipython().system`."""
        after: list[str] = []
        while isinstance(called, ast.Attribute | ast.Call):
            after.append(f".{called.attr}" if isinstance(called, ast.Attribute) else "()")
            called = called.value if isinstance(called, ast.Attribute) else called.func
        start = self._paths.get(called.id, called.id) if isinstance(called, ast.Name) else ""
        return start + "".join(reversed(after))

    def _learn(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]
                self._paths[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                self._paths[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                self._learn_file(item.context_expr, [item.optional_vars])
        elif isinstance(node, ast.Assign):
            self._learn_file(node.value, node.targets)

    def _learn_file(self, value: ast.expr, targets: list[ast.expr | None] | list[ast.expr]) -> None:
        if isinstance(value, ast.Call) and self._is_file(self._path(value.func)):
            self._files |= {target.id for target in targets if isinstance(target, ast.Name)}


def _inner(node: ast.AST, name: str) -> list[ast.AST]:
    """Return a node's statements of one kind; an expression's body (a lambda's) is no list."""
    inner = getattr(node, name, None)
    return inner if isinstance(inner, list) else []


def _own_parts(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the parts of a statement that are not statements within it."""
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        yield part
        within = ast.iter_child_nodes(part)
        pending += [child for child in within if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)]
