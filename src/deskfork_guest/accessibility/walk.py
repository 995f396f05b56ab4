"""Going down the trees of applications, level by level, wherever something shows.

AT-SPI's Cache.GetItems would tell a whole tree at once, but at-spi2-core 2.46 keeps that cache only while somebody
listens to every change, which costs applications more than a walk does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from deskfork_guest.accessibility.applications import ROOT, Application, Inquiry
from deskfork_guest.accessibility.bus import Call
from deskfork_guest.accessibility.names import DEFUNCT, ICONIFIED, SHOWING
from deskfork_guest.accessibility.screen import Rectangle
from deskfork_guest.accessibility.wire import (
    Malformed,
    parse_bits,
    parse_rectangle,
    parse_references,
    parse_u32,
    parse_variant_text,
)

MAX_VISITED = 8000
"""How many objects are asked, in one look, whether they show."""
MAX_CHILDREN = 2000
MAX_DEPTH = 100


@dataclass(slots=True)
class Item:
    """One object of an application that shows."""

    path: str
    states: int
    """A set: one bit for each of AT-SPI's states."""
    children: list["Item"] = field(default_factory=list)
    role: int = 0
    name: str = ""
    place: Rectangle | None = None
    """Where it says that it is on the screen, if it does."""


@dataclass
class _Tree:
    """An application, and what has been found of it so far."""

    application: Application
    windows: list[Item]
    seen: set[str]


def walk(inquiry: Inquiry, applications: Sequence[Application]) -> tuple[list[tuple[Application, list[Item]]], bool]:
    """Return the top-level objects of applications, with all below them that shows, and whether that is all.

    What cannot be asked because an application does not answer, or lies beyond MAX_VISITED, MAX_CHILDREN or MAX_DEPTH,
    is missing.

    Raises:
        BusUnavailable: The bus broke off.
    """
    trees = [_Tree(application, [], {ROOT}) for application in applications]
    replies = inquiry.ask([(tree.application, tree.application.children, ROOT) for tree in trees])
    level = [
        (tree, tree.windows, path) for tree, raw in zip(trees, replies, strict=True) for path in _unseen(tree, raw)
    ]
    visited, is_whole = 0, True
    for _ in range(MAX_DEPTH):
        is_whole &= visited + len(level) <= MAX_VISITED
        level = level[: MAX_VISITED - visited]
        visited += len(level)
        if not level:
            break
        level = _next_level(inquiry, level)
    is_whole &= not level
    _fill_in(inquiry, trees)
    return [(tree.application, tree.windows) for tree in trees], is_whole and not inquiry.silent


def every(items: Sequence[Item]) -> Iterator[Item]:
    """Yield items and all that is below them, parents first."""
    # With a stack of our own: MAX_DEPTH generators inside each other would cost more than the rest.
    stack = list(reversed(items))
    while stack:
        item = stack.pop()
        yield item
        stack.extend(reversed(item.children))


def _next_level(inquiry: Inquiry, level: list[tuple[_Tree, list[Item], str]]) -> list[tuple[_Tree, list[Item], str]]:
    """Make items of what shows of a level, and return the children of those."""
    questions: list[tuple[Application, Call, str]] = []
    for tree, _, path in level:
        # Both at once: a round costs more than the children of what turns out not to show.
        questions += [
            (tree.application, tree.application.states, path),
            (tree.application, tree.application.children, path),
        ]
    replies = inquiry.ask(questions)
    below = []
    for n, (tree, siblings, path) in enumerate(level):
        states = _states(replies[2 * n])
        if not states >> SHOWING & 1 or states & (1 << DEFUNCT | 1 << ICONIFIED):
            continue
        item = Item(path, states)
        siblings.append(item)
        below += [(tree, item.children, child) for child in _unseen(tree, replies[2 * n + 1])]
    return below


def _unseen(tree: _Tree, raw: bytes | None) -> list[str]:
    """Return the paths of children that the application has not named before: its tree may have circles."""
    try:
        found = parse_references(raw or b"", MAX_CHILDREN)
    except Malformed:
        return []
    paths = [path for name, path in found if name == tree.application.name and path not in tree.seen]
    tree.seen.update(paths)
    return list(dict.fromkeys(paths))


def _fill_in(inquiry: Inquiry, trees: Sequence[_Tree]) -> None:
    items = [(tree.application, item) for tree in trees for item in every(tree.windows)]
    questions: list[tuple[Application, Call, str]] = []
    for application, item in items:
        for call in (application.role, application.label, application.extents):
            questions.append((application, call, item.path))
    replies = inquiry.ask(questions)
    for n, (_, item) in enumerate(items):
        role, name, extents = (reply or b"" for reply in replies[3 * n : 3 * n + 3])
        try:
            item.role = parse_u32(role)
            item.name = parse_variant_text(name)
            item.place = Rectangle(*parse_rectangle(extents))
        except Malformed:
            item.place = None


def _states(raw: bytes | None) -> int:
    try:
        return parse_bits(raw or b"")
    except Malformed:
        return 0
