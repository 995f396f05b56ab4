"""What the Python of an action space may hold; checked before any of it runs."""

import ast
import re
import string
from collections.abc import Collection

from deskfork.agent.actions.cells import parse_python
from deskfork.agent.actions.no_gui import check_code
from deskfork.agent.actions.refusal import Refused

__all__ = ["check_block", "check_code"]

_EASINGS = frozenset(
    f"ease{how}{kind}"
    for how in ("In", "Out", "InOut")
    for kind in ("Quad", "Cubic", "Quart", "Quint", "Sine", "Expo", "Circ", "Elastic", "Back", "Bounce")
)
_SETTINGS = frozenset({"PAUSE", "FAILSAFE", "MINIMUM_DURATION", "MINIMUM_SLEEP"})
_PLACED = frozenset(
    {"click", "leftClick", "rightClick", "middleClick", "doubleClick", "tripleClick", "mouseDown", "mouseUp", "moveTo"}
    | {"dragTo"}
)
_MODULES = {
    "pyautogui": _PLACED
    | _EASINGS
    | _SETTINGS
    | {"moveRel", "move", "dragRel", "drag", "scroll", "hscroll", "vscroll", "press", "keyDown", "keyUp", "hold"}
    | {"typewrite", "write", "hotkey", "shortcut", "sleep", "countdown", "position", "size", "resolution", "onScreen"}
    | {"isValidKey", "isShiftCharacter", "linear", "LEFT", "MIDDLE", "RIGHT", "PRIMARY", "SECONDARY", "KEY_NAMES"}
    | {"KEYBOARD_KEYS", "PyAutoGUIException", "FailSafeException"},
    "time": frozenset({"sleep", "time", "monotonic", "perf_counter"}),
}
_BUILTINS = frozenset(
    {"print", "range", "len", "int", "float", "str", "bool", "list", "tuple", "dict", "set", "frozenset", "abs", "min"}
    | {"max", "sum", "round", "divmod", "pow", "enumerate", "zip", "reversed", "sorted", "any", "all", "map", "filter"}
    | {"iter", "next", "isinstance", "repr", "chr", "ord", "Exception", "ValueError", "TypeError", "KeyError"}
    | {"IndexError", "RuntimeError", "ZeroDivisionError", "AssertionError", "StopIteration", "TimeoutError"}
)
_ATTRIBUTES = frozenset(
    {"x", "y", "width", "height", "append", "extend", "insert", "pop", "remove", "clear", "index", "count", "sort"}
    | {"reverse", "copy", "keys", "values", "items", "get", "update", "setdefault", "add", "discard", "union", "split"}
    | {"rsplit", "splitlines", "join", "strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize", "replace"}
    | {"startswith", "endswith", "find", "isdigit", "isalpha", "isupper", "islower", "isspace", "isalnum", "zfill"}
    | {"ljust", "rjust", "center", "partition", "rpartition"}
)
_NODES = (
    ast.Module, ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Pass, ast.Break, ast.Continue,
    ast.If, ast.For, ast.While, ast.With, ast.withitem, ast.Try, ast.ExceptHandler, ast.Raise, ast.Assert,
    ast.Import, ast.alias, ast.ImportFrom, ast.FunctionDef, ast.Return, ast.Lambda, ast.arguments, ast.arg,
    ast.Name, ast.Attribute, ast.Call, ast.keyword, ast.Subscript, ast.Slice, ast.Starred, ast.Constant,
    ast.JoinedStr, ast.FormattedValue, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp, ast.comprehension, ast.IfExp, ast.NamedExpr, ast.BinOp, ast.UnaryOp, ast.BoolOp,
    ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip
_WORDS = {
    ast.ClassDef: "a class", ast.AsyncFunctionDef: "async", ast.Await: "await", ast.Yield: "yield", ast.Match: "match",
    ast.YieldFrom: "yield", ast.Global: "global", ast.Nonlocal: "nonlocal", ast.AsyncFor: "async",
    ast.AsyncWith: "async", ast.TryStar: "except*",
}  # fmt: skip
_MARK = re.compile(r"mark_(\d+)")
_OTHER_LINE_ENDS = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]|\r(?!\n)")
_SHOWN = 40


def check_block(code: str, marks: Collection[int]) -> None:
    """Refuse a block of the space `pyautogui` that does more than drive mouse and keyboard, wait and compute.

    What is allowed is listed, all else is refused: imports of `pyautogui` and `time` (both are there without), their
    acting functions, a few built-ins, and names that the block itself binds, so that none is left from another block.

    Args:
        code: The block.
        marks: Numbers of the marks that are shown; `mark_3` is the centre of the third.

    Raises:
        Refused: The block holds something else, or does not parse.
    """
    if _OTHER_LINE_ENDS.search(code):
        raise Refused("the block holds a control character or an odd line end: write plain lines")
    try:
        tree = parse_python(code)
    except SyntaxError as exc:
        line = f"line {exc.lineno}: " if exc.lineno else ""
        raise Refused(f"the block is not Python: {line}{exc.msg}") from exc
    except (ValueError, RecursionError, MemoryError) as exc:
        raise Refused(f"the block is not Python: {exc or 'it is nested too deeply'}") from exc
    _Block(tree, marks).check()


class _Block:
    """Looks at one block, node by node."""

    def __init__(self, tree: ast.Module, marks: Collection[int]) -> None:
        self._nodes = list(ast.walk(tree))
        self._marks = marks
        self._modules = {"pyautogui": "pyautogui", "time": "time"}
        self._bound: set[str] = set()
        self._placed: set[str] = set()
        # Modules stand only before a dot, so that none can be handed on under another name.
        self._dotted = {id(node.value) for node in self._nodes if isinstance(node, ast.Attribute)}
        for node in self._nodes:
            self._bind(node)

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            self._modules |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            self._bound |= {alias.asname or alias.name for alias in node.names}
            self._placed |= {alias.asname or alias.name for alias in node.names if alias.name in _PLACED}
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            self._bound.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ExceptHandler) and node.name:
            self._bound.add(node.name)
        elif isinstance(node, ast.arg):
            self._bound.add(node.arg)

    def check(self) -> None:
        for node in self._nodes:
            if not isinstance(node, _NODES):
                what = _WORDS.get(type(node), type(node).__name__)
                raise Refused(f"{what} is not allowed in a block: use plain statements")
            if check := getattr(self, f"_check_{type(node).__name__.lower()}", None):
                check(node)

    def _check_import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name not in _MODULES:
                raise Refused(f"import {alias.name}: a block may import pyautogui and time only")
            self._check_name_text(alias.asname or alias.name)

    def _check_importfrom(self, node: ast.ImportFrom) -> None:
        allowed = _MODULES.get(node.module or "")
        if allowed is None or node.level:
            raise Refused(f"from {node.module} import: a block may import pyautogui and time only")
        for alias in node.names:
            if alias.name not in allowed:
                raise Refused(f"{node.module}.{alias.name} is not allowed in a block")
            self._check_name_text(alias.asname or alias.name)

    def _check_name(self, node: ast.Name) -> None:
        self._check_name_text(node.id)
        if not isinstance(node.ctx, ast.Load) or node.id in self._bound:
            return
        if node.id in self._modules:
            if id(node) not in self._dotted:
                raise Refused(f"the module {node.id} can only be used as in {node.id}.NAME")
        elif mark := _MARK.fullmatch(node.id):
            if mark[1] not in map(str, self._marks):
                shown = ", ".join(f"mark_{number}" for number in sorted(self._marks)[:20]) or "none"
                raise Refused(f"{node.id[:_SHOWN]} is not shown; shown are: {shown}")
        elif node.id not in _BUILTINS:
            raise Refused(
                f"{node.id[:_SHOWN]!r} is not known in a block: no variable of it, of pyautogui or time, and no "
                "built-in function that is allowed; blocks share no variables"
            )

    def _check_name_text(self, name: str) -> None:
        if name.startswith("_") and name != "_":
            raise Refused(f"{name[:_SHOWN]!r}: names that begin with an underscore are not allowed in a block")

    def _check_attribute(self, node: ast.Attribute) -> None:
        self._check_name_text(node.attr)
        module = self._modules.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if not isinstance(node.ctx, ast.Load):
            if module != "pyautogui" or node.attr not in _SETTINGS:
                raise Refused(f"setting .{node.attr[:_SHOWN]} is not allowed in a block")
        elif module is not None and node.attr in _MODULES.get(module, ()):
            return
        elif node.attr == "format" and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            _check_format(node.value.value)
        elif node.attr not in _ATTRIBUTES or (module is not None and node.value.id not in self._bound):  # type: ignore[attr-defined]
            raise Refused(f"{module or ''}.{node.attr[:_SHOWN]} is not allowed in a block")

    def _check_call(self, node: ast.Call) -> None:
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        is_placed = name in (_PLACED if isinstance(called, ast.Attribute) else self._placed)
        given = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "x")]
        if is_placed and any(isinstance(x, ast.JoinedStr) or _is_text(x) for x in given):
            raise Refused(f"{name} takes x and y in pixels: searching the screen for a picture is not allowed")

    def _check_keyword(self, node: ast.keyword) -> None:
        if node.arg == "logScreenshot":
            raise Refused("screenshots are not allowed in a block")
        if node.arg is not None and node.arg != "_pause":
            self._check_name_text(node.arg)

    def _check_functiondef(self, node: ast.FunctionDef) -> None:
        self._check_name_text(node.name)
        if node.decorator_list:
            raise Refused("decorators are not allowed in a block")

    def _check_arg(self, node: ast.arg) -> None:
        self._check_name_text(node.arg)

    def _check_excepthandler(self, node: ast.ExceptHandler) -> None:
        self._check_name_text(node.name or "")

    def _check_constant(self, node: ast.Constant) -> None:
        if node.value is ...:
            # IPython takes it for a prompt where it begins a line, and what is behind it for a line of its own.
            raise Refused("... is not allowed in a block: use pass")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _check_format(template: str) -> None:
    try:
        fields = list(string.Formatter().parse(template))
    except ValueError:
        return
    for _, name, spec, _ in fields:
        if name is not None and (set(name) & set(".[") or "{" in (spec or "")):
            raise Refused("format: fields that look into their values are not allowed in a block; use an f-string")
