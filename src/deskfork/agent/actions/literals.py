"""What expressions stand for, where it is written out: strings, lists of words, the environment."""

import ast
from collections.abc import Iterable, Iterator, Mapping

UNKNOWN = "_"
"""Stands where a part cannot be told."""
_SAME_TEXT = frozenset({"strip", "lstrip", "rstrip", "format", "split", "rsplit", "splitlines", "encode", "lower"})
_DEPTH = 12


class Names:
    """What the names in one cell stand for, as far as it says so itself."""

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self.values: dict[str, list[ast.expr]] = {}
        """What is assigned to each name."""
        self._aliases: dict[str, str] = {}
        self._environs: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.values.setdefault(target.id, []).append(node.value)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._aliases |= {alias.asname or alias.name: alias.name for alias in node.names}
        self._environs = {name for name, values in self.values.items() if any(map(self.is_environ, values))}

    def last(self, node: ast.expr) -> str:
        """Return the last part of a dotted name, by the name it was imported by; empty for anything else."""
        if isinstance(node, ast.Attribute):
            return node.attr
        return self._aliases.get(node.id, node.id).rpartition(".")[2] if isinstance(node, ast.Name) else ""

    def is_environ(self, node: ast.expr) -> bool:
        """Tell whether an expression is the process's environment, or a copy of it."""
        if isinstance(node, ast.Call):
            name = self.last(node.func)
            if name == "copy" and isinstance(node.func, ast.Attribute):
                return self.is_environ(node.func.value)
            return name == "dict" and bool(node.args) and self.is_environ(node.args[0])
        if isinstance(node, ast.Dict):
            return any(k is None and self.is_environ(v) for k, v in zip(node.keys, node.values, strict=True))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self.is_environ(node.left) or self.is_environ(node.right)
        if isinstance(node, ast.Name) and node.id in self._environs:
            return True
        return isinstance(node, ast.Name | ast.Attribute) and self.last(node) == "environ"


def texts(node: ast.expr, values: Mapping[str, list[ast.expr]], depth: int = _DEPTH) -> Iterator[str]:
    """Yield the strings that an expression may stand for, joined parts and formatted ones included.

    Args:
        node: The expression.
        values: What is assigned to each name in the same cell.
        depth: How far to look into it.
    """
    if depth <= 0:
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        yield node.value if isinstance(node.value, str) else node.value.decode("latin-1")
    elif isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.FormattedValue) else part for part in node.values)
        yield "".join(_one(part, values, depth) for part in parts)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield "".join(_one(part, values, depth) for part in _operands(node))
    elif isinstance(node, ast.Call):
        yield from _called(node, values, depth)
    else:
        for part in _instead(node, values):
            yield from texts(part, values, depth - 1)


def lists(node: ast.expr, values: Mapping[str, list[ast.expr]], depth: int = _DEPTH) -> Iterator[list[str]]:
    """Yield the lists of words that an expression may stand for; parameters as for `texts`."""
    if depth <= 0:
        return
    if isinstance(node, ast.List | ast.Tuple):
        words: list[str] = []
        for part in node.elts:
            if isinstance(part, ast.Starred):
                words += next(lists(part.value, values, depth - 1), [UNKNOWN])
            else:
                words.append(_one(part, values, depth))
        yield words
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield [word for part in _operands(node) for word in next(lists(part, values, depth - 1), [UNKNOWN])]
    else:
        for part in _instead(node, values):
            yield from lists(part, values, depth - 1)


def _instead(node: ast.expr, values: Mapping[str, list[ast.expr]]) -> list[ast.expr]:
    """Return what may stand in the place of an expression: a name's values, either side of a choice, a template."""
    if isinstance(node, ast.Name):
        return values.get(node.id, [])
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    return [node.left] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) else []


def _one(node: ast.expr, values: Mapping[str, list[ast.expr]], depth: int) -> str:
    if isinstance(node, ast.Attribute) and node.attr == "executable":
        return "python"
    return next(texts(node, values, depth - 1), UNKNOWN)


def _operands(node: ast.BinOp) -> list[ast.expr]:
    """Return what a sum adds up, without recursion: a sum may be long."""
    found: list[ast.expr] = []
    current: ast.expr = node
    while isinstance(current, ast.BinOp) and isinstance(current.op, ast.Add):
        found.append(current.right)
        current = current.left
    return [current, *reversed(found)]


def _called(node: ast.Call, values: Mapping[str, list[ast.expr]], depth: int) -> Iterator[str]:
    if not isinstance(node.func, ast.Attribute):
        return
    if node.func.attr == "join" and node.args:
        glue = _one(node.func.value, values, depth)
        yield from (glue.join(words) for words in lists(node.args[0], values, depth - 1))
    elif node.func.attr in _SAME_TEXT:
        found = list(texts(node.func.value, values, depth - 1))
        # shlex.split(TEXT), unlike TEXT.split(), has its text in the parentheses.
        yield from found or (texts(node.args[0], values, depth - 1) if node.args else ())
