"""What PyAutoGUI's calls in a cell do to the pointer, where they name places by literals."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from deskfork.agent.actions.cells import read_cell

_FAR = 1_000_000
_OFTEN = {1: "", 2: "double", 3: "triple"}

Kind = Literal["move", "click", "drag", "scroll", "press", "release"]
Point = tuple[float, float]


@dataclass(frozen=True)
class Did:
    """One act on the pointer, in pixels of the picture that the agent was shown.

    `place` is None for where the pointer is, or with `is_unknown` for a place that cannot be told.
    """

    kind: Kind
    place: Point | None
    label: str = ""
    start: Point | None = None
    is_relative: bool = False
    is_unknown: bool = False


def label(button: object, clicks: int) -> str:
    """Return what is special about a click; empty for one of the left button."""
    side = str(button) if button in ("right", "middle") else ""
    return " ".join(filter(None, (side, _OFTEN.get(clicks, f"{clicks} times"))))


def turned(dy: float, dx: float) -> str:
    """Return how the wheel was turned; up and right are positive."""
    vertical = f"{'up' if dy > 0 else 'down'} {abs(dy):g}" if dy else ""
    sideways = f"{'right' if dx > 0 else 'left'} {abs(dx):g}" if dx else ""
    return " ".join(filter(None, (vertical, sideways)))


# Each call's kind and clicks, its button if the name tells, and its parameters in order up to the last that matters.
_XY = ("x", "y")
_BY = ("xOffset", "yOffset")
_CALLS: dict[str, tuple[Kind, int, str, tuple[str, ...]]] = {
    "moveTo": ("move", 1, "", _XY),
    "move": ("move", 1, "", _BY),
    "moveRel": ("move", 1, "", _BY),
    "click": ("click", 1, "", (*_XY, "clicks", "interval", "button")),
    "leftClick": ("click", 1, "", _XY),
    "rightClick": ("click", 1, "right", _XY),
    "middleClick": ("click", 1, "middle", _XY),
    "doubleClick": ("click", 2, "", (*_XY, "interval", "button")),
    "tripleClick": ("click", 3, "", (*_XY, "interval", "button")),
    "mouseDown": ("press", 1, "", (*_XY, "button")),
    "mouseUp": ("release", 1, "", (*_XY, "button")),
    "dragTo": ("drag", 1, "", (*_XY, "duration", "tween", "button")),
    "drag": ("drag", 1, "", (*_BY, "duration", "tween", "button")),
    "dragRel": ("drag", 1, "", (*_BY, "duration", "tween", "button")),
    "scroll": ("scroll", 1, "", ("clicks", *_XY)),
    "vscroll": ("scroll", 1, "", ("clicks", *_XY)),
    "hscroll": ("scroll", 1, "", ("clicks", *_XY)),
}


class PointerCalls:
    """Finds PyAutoGUI's calls in Python; names that one cell imports are known in the next."""

    def __init__(self) -> None:
        self._modules = {"pyautogui"}
        self._functions: dict[str, str] = {}

    def of(self, code: str) -> Iterator[Did]:
        """Yield what a cell's calls do to the pointer, in the order in which they stand."""
        tree = read_cell(code).tree
        if tree is None:
            return
        calls = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._learn(node)
            elif isinstance(node, ast.Call):
                calls.append(node)
        for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
            name = self._name(call.func)
            if name in _CALLS:
                yield _of_call(name, call)

    def _learn(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            self._modules |= {alias.asname for alias in node.names if alias.name == "pyautogui" and alias.asname}
        elif node.module == "pyautogui":
            self._functions |= {alias.asname or alias.name: alias.name for alias in node.names}

    def _name(self, called: ast.expr) -> str:
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            return called.attr if called.value.id in self._modules else ""
        return self._functions.get(called.id, "") if isinstance(called, ast.Name) else ""


def _of_call(name: str, call: ast.Call) -> Did:
    kind, clicks, button, parameters = _CALLS[name]
    given: dict[str, ast.expr] = dict(zip(parameters, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    is_opaque = any(isinstance(argument, ast.Starred) for argument in call.args) or None in {
        keyword.arg for keyword in call.keywords
    }
    across, down = _BY if "xOffset" in parameters else _XY
    point = _point(given.get(across), given.get(down))
    told = label(button or _literal(given.get("button")), clicks if name != "click" else _whole(given.get("clicks")))
    if kind == "scroll":
        amount = _number(_literal(given.get("clicks"))) or 0
        told = turned(0, amount) if name == "hscroll" else turned(amount, 0)
    names_place = across in given or down in given
    is_unknown = is_opaque or (names_place and point is None)
    return Did(kind, point, told, is_relative=across == "xOffset", is_unknown=is_unknown)


def _point(across: ast.expr | None, down: ast.expr | None) -> Point | None:
    x, y = _literal(across), _literal(down)
    if isinstance(x, tuple | list) and len(x) == 2 and down is None:
        x, y = x
    left, top = _number(x), _number(y)
    return None if left is None or top is None else (left, top)


def _whole(node: ast.expr | None) -> int:
    value = _literal(node)
    return value if isinstance(value, int) and 1 <= value <= _FAR else 1


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _FAR else None


def _literal(node: ast.expr | None) -> object:
    """Return what a literal stands for, None for anything else."""
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
