"""The accessibility tree as agents read it: what matters of it, in lines of a table."""

from collections.abc import Iterable, Sequence

from deskfork.agent.text import one_line
from deskfork.agent.view import View
from deskfork.core.types import AccessibleNode

CHARS_A_TOKEN = 4
"""An estimate: the tokenizers of remote models are not to be had."""
MAX_TEXT_CHARS = 200
_ACTABLE = frozenset(
    {
        "button", "push button", "toggle button", "check box", "radio button", "combo box", "entry", "password text",
        "spin button", "slider", "link", "menu", "menu item", "check menu item", "radio menu item", "list item",
        "tree item", "page tab", "icon", "scroll bar", "table cell", "terminal", "text",
    }
)  # fmt: skip
_TOLD_STATES = ("focused", "checked", "selected", "expanded", "disabled", "editable")


def actable(nodes: Iterable[AccessibleNode]) -> list[AccessibleNode]:
    """Return the nodes that can be clicked or typed into, each place once."""
    found: dict[tuple[int, int, int, int], AccessibleNode] = {}
    for node in nodes:
        is_there = node.width_px > 0 and node.height_px > 0
        if is_there and (node.is_clickable or node.role in _ACTABLE or "editable" in node.states):
            # The innermost of several nodes with one box is the one that acts.
            found[node.x, node.y, node.width_px, node.height_px] = node
    return list(found.values())


def telling(nodes: Iterable[AccessibleNode]) -> list[AccessibleNode]:
    """Return the nodes that say or do something: those with a name or a text, and the actable ones."""
    kept = list(nodes)
    can_act = {id(node) for node in actable(kept)}
    return [node for node in kept if node.name.strip() or node.text.strip() or id(node) in can_act]


def centre(node: AccessibleNode, view: View) -> tuple[int, int]:
    """Return the middle of what of a node is on the screen, in real pixels."""
    left, top = max(0, node.x), max(0, node.y)
    right, bottom = min(view.width_px, node.x + node.width_px), min(view.height_px, node.y + node.height_px)
    return (left + right) // 2, (top + bottom) // 2


def table(rows: Sequence[tuple[str, AccessibleNode]], view: View, *, first: str, tokens: int) -> str:
    """Return nodes as tab-separated lines, cut at a budget.

    Args:
        rows: What stands first in a line, and the node.
        view: Coordinates and sizes are those of the picture that the model sees.
        first: Head of the first column.
        tokens: About how many the table may take.
    """
    lines, left = [f"{first}\tname\ttext\tcentre\tsize\tstate"], tokens * CHARS_A_TOKEN
    for number, (start, node) in enumerate(rows):
        x, y = view.shown(*centre(node, view))
        width, height = view.shown(node.width_px, node.height_px)
        states = " ".join(state for state in _TOLD_STATES if state in node.states)
        name, text = one_line(node.name, MAX_TEXT_CHARS), one_line(node.text, MAX_TEXT_CHARS)
        line = f"{start}\t{name}\t{text if text != name else ''}\t({x}, {y})\t{width}x{height}\t{states}".rstrip()
        left -= len(line) + 1
        if left < 0:
            lines.append(f"[{len(rows) - number} more elements are left out]")
            break
        lines.append(line)
    return "\n".join(lines)
