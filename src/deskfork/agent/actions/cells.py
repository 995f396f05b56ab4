"""What a notebook cell consists of: Python, and the lines and magics that IPython runs otherwise.

Source: IPython 9 `core/inputtransformer2.py` (what is stripped, what escapes) and `core/magics` (what runs what).
"""

import ast
import re
import textwrap
import threading
import warnings
from dataclasses import dataclass

_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "!", "sx", "system"})
_PYTHONS = frozenset({"python", "python3", "pypy", "pypy3"})
_WRAPPERS = frozenset({"time", "timeit", "capture", "prun", "debug", "memit", "mprun", "lprun"})
_PROMPT = re.compile(r"(?:>>>|\.\.\.)(?: |$)|(?:In \[\d+\]: |[ \t]*\.{3,}: ?)")
_ESCAPED = re.compile(
    r"(?P<before>[ \t]*)(?P<target>[A-Za-z_][\w.\[\], \t'\"]*=[ \t]*)?"
    r"(?P<rest>!!?[^=\n].*|%[ \t]*[A-Za-z!].*|\?{1,2}[\w.%].*|[\w.%]+\?{1,2}[ \t]*|[,;/][A-Za-z_].*)$"
)
_PLACEHOLDER = "deskfork_escaped_line_"
_warning_filters = threading.Lock()


@dataclass(frozen=True)
class Magic:
    """A line that IPython takes for a command of its own."""

    name: str
    rest: str
    """What follows the name on its line."""
    body: str = ""
    """The cell's other lines, where the magic takes them."""


@dataclass(frozen=True)
class Cell:
    """One cell, taken apart."""

    tree: ast.Module | None
    """Its Python; None when it does not parse."""
    scripts: tuple[str, ...] = ()
    """What goes to a shell: one script for each line or cell."""
    magics: tuple[Magic, ...] = ()
    """What goes to other magics, but for those that only time or capture Python."""


def parse_python(text: str) -> ast.Module:
    """Parse Python without a word about odd escapes.

    Raises:
        SyntaxError: It is not Python.
        ValueError: It holds what no source may hold, such as a null character.
        RecursionError: It is nested too deeply; a MemoryError may say so too.
    """
    # The filters are the process's, and other trials may be at this line too.
    with _warning_filters, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def read_cell(code: str, depth: int = 3) -> Cell:
    """Take a cell apart as IPython would. Never raises.

    Args:
        code: The cell.
        depth: How many magics that run Python may stand within each other.
    """
    text = _stripped(code)
    first, _, body = text.partition("\n")
    if first.startswith("%%") and first[2:].strip() and depth:
        return _cell_magic(first[2:], body, depth)
    tree = _tree(text)
    return Cell(tree) if tree is not None else _escaped(text, depth)


def _cell_magic(first: str, body: str, depth: int) -> Cell:
    name, _, rest = first.strip().partition(" ")
    program = rest.split()[0].rpartition("/")[2] if name == "script" and rest.split() else name
    if program in _SHELLS:
        return Cell(ast.Module([], []), scripts=(f"{rest}\n{body}" if name in ("!", "sx", "system") else body,))
    if program in _PYTHONS:
        return read_cell(body, depth - 1)
    if name in _WRAPPERS:
        inner = read_cell(body, depth - 1)
        timed = read_cell(_statement(rest), depth - 1)
        nodes = [node for part in (timed, inner) if part.tree is not None for node in part.tree.body]
        tree = ast.Module(nodes, []) if inner.tree is not None else None
        return Cell(tree, timed.scripts + inner.scripts, timed.magics + inner.magics)
    return Cell(ast.Module([], []), magics=(Magic(name, rest, body),))


def _escaped(text: str, depth: int) -> Cell:
    """Read a cell in which lines are not Python's; those within strings are."""
    lines = text.split("\n")
    found: list[str] = []
    number = 0
    while number < len(lines):
        match = _ESCAPED.match(lines[number])
        if match is not None:
            escaped, start = match["rest"], number
            while escaped.endswith("\\") and number + 1 < len(lines):
                number += 1
                escaped = f"{escaped[:-1]} {lines[number]}"
                lines[number] = ""
            lines[start] = f"{match['before']}{match['target'] or ''}{_PLACEHOLDER}{len(found)}"
            found.append(escaped)
        number += 1
    tree = _tree("\n".join(lines)) if found else None
    if tree is None:
        return Cell(None)
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id.startswith(_PLACEHOLDER)}
    parts = [_line(found[place], depth) for place in range(len(found)) if f"{_PLACEHOLDER}{place}" in named]
    tree.body = [node for node in tree.body if not _is_placeholder(node)]
    tree.body += [node for part in parts if part.tree is not None for node in part.tree.body]
    return Cell(
        tree,
        tuple(script for part in parts for script in part.scripts),
        tuple(magic for part in parts for magic in part.magics),
    )


def _line(escaped: str, depth: int) -> Cell:
    if escaped.startswith("!"):
        return Cell(None, scripts=(escaped.lstrip("!"),))
    if not escaped.startswith("%"):
        return Cell(None, magics=(Magic(escaped[:1], escaped),))
    name, _, rest = escaped.lstrip("% \t").partition(" ")
    if name in ("sx", "system") or name.startswith("!"):
        return Cell(None, scripts=(f"{name.lstrip('!')} {rest}" if name.startswith("!") else rest,))
    if name in _WRAPPERS and depth:
        return read_cell(_statement(rest), depth - 1)
    return Cell(None, magics=(Magic(name, rest),))


def _statement(rest: str) -> str:
    """Return what a timing magic's line runs, its options left out."""
    return re.sub(r"^(?:\s*-\w+(?:[ \t]+\d+)?)+(?=\s|$)", "", rest).strip()


def _is_placeholder(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id.startswith(_PLACEHOLDER)


def _stripped(code: str) -> str:
    """Undo what IPython undoes before it reads a cell: empty lines, indentation and prompts before the code."""
    # IPython breaks lines at every line end that Unicode knows, Python only at a few.
    lines = code.splitlines() if _tree(code) is None else code.split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    if lines and lines[0][:1] in (" ", "\t"):
        lines = textwrap.dedent("\n".join(lines)).split("\n")
    if any(_PROMPT.match(line) for line in lines[:2]):
        lines = [_PROMPT.sub("", line, count=1) if _PROMPT.match(line) else line for line in lines]
    return "\n".join(lines)


def _tree(text: str) -> ast.Module | None:
    try:
        return parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
