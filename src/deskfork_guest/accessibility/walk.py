"""Going down the trees of applications, wherever something shows.

AT-SPI's Cache.GetItems would tell a whole tree at once, but at-spi2-core 2.46 keeps that cache only while somebody
listens to every change, which costs applications more than a walk does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from deskfork_guest.accessibility.applications import MAX_TEXT, ROOT, Application, Inquiry, Question
from deskfork_guest.accessibility.bus import Call
from deskfork_guest.accessibility.names import DEFUNCT, EDITABLE, ICONIFIED, ROLES, SHOWING, VISIBLE, role_name
from deskfork_guest.accessibility.wire import (
    Malformed,
    parse_bits,
    parse_references,
    parse_text,
    parse_u32,
    parse_variant_text,
)

MAX_VISITED = 8000
"""How many objects are asked, in one look, whether they show."""
MAX_CHILDREN = 2000
MAX_DEPTH = 100
MAX_NAME = 500
EMBEDDED = "\ufffc"
"""Stands in a text for an object of its own."""
_SHOWN_BITS = 1 << SHOWING | 1 << VISIBLE
_CHILDREN, _STATES, _ROLE, _NAME, _TEXT = range(5)
_LEAVES = frozenset(("static", "label", "image", "icon", "separator", "progress bar", "scroll bar", "slider"))
_BUTTON_ROLES = "check box,check menu item,push button,radio button,radio menu item,spin button,toggle button"
_BUTTONS = frozenset(_BUTTON_ROLES.split(","))
"""Roles of what is called what is in it."""


@dataclass(slots=True)
class Item:
    """One object of an application."""

    path: str
    level: int
    """How deep in the tree it is; a top-level object's is 0."""
    is_in_editor: bool = False
    """Whether its parent can be edited."""
    is_shown: bool = False
    states: int = 0
    """A set: one bit for each of AT-SPI's states."""
    role: int = 0
    name: str = ""
    content: str = ""
    """The text of a line in an editor, whose parts are not told one by one."""
    children: list["Item"] = field(default_factory=list)


@dataclass
class _Tree:
    """An application, and what has been found of it so far."""

    application: Application
    windows: list[Item]
    seen: set[str]


_Asked = tuple[int, _Tree, Item | None]
"""Which question to which object; the application itself is None."""


class Walk:
    """One walk through the trees of applications."""

    def __init__(self, applications: Sequence[Application]) -> None:
        """Prepare to walk; nothing is asked yet."""
        self._trees = [_Tree(application, [], {ROOT}) for application in applications]
        self._visited = 0
        self._is_whole = True

    def go(self, inquiry: Inquiry) -> tuple[list[tuple[Application, list[Item]]], bool]:
        """Return the top-level objects of applications, with all below them that shows, and whether that is all.

        What cannot be asked because an application does not answer, or lies beyond MAX_VISITED, MAX_CHILDREN or
        MAX_DEPTH, is missing.

        Raises:
            BusUnavailable: The bus broke off.
        """
        first: list[Question[_Asked]] = [
            (tree.application, tree.application.children, ROOT, (_CHILDREN, tree, None)) for tree in self._trees
        ]
        inquiry.pursue(first, self._answer)
        found = [(tree.application, [item for item in tree.windows if item.is_shown]) for tree in self._trees]
        return found, self._is_whole and not inquiry.silent

    def _answer(self, asked: _Asked, raw: bytes) -> list[Question[_Asked]]:
        kind, tree, item = asked
        try:
            if kind == _CHILDREN:
                return self._take_children(tree, item, parse_references(raw, MAX_CHILDREN + 1))
            assert item is not None
            if kind == _STATES:
                return self._take_states(tree, item, parse_bits(raw))
            if kind == _ROLE:
                item.role = parse_u32(raw)
                return []
            if kind == _NAME:
                item.name = parse_variant_text(raw)[: MAX_NAME + 1]
                return [] if item.is_in_editor else self._go_down(tree, item)
            text = parse_text(raw) if raw else ""
            if text.strip("\n") and EMBEDDED not in text:
                item.content = text[: MAX_TEXT + 1]
                return []
            return self._go_down(tree, item)
        except Malformed:
            # It has gone, or its application talks nonsense.
            return []

    def _take_children(
        self, tree: _Tree, parent: Item | None, references: list[tuple[str, str]]
    ) -> list[Question[_Asked]]:
        # An object that was named before is not followed: trees may have circles.
        paths = [path for name, path in references if name == tree.application.name and path not in tree.seen]
        paths = list(dict.fromkeys(paths))
        room = min(MAX_CHILDREN, MAX_VISITED - self._visited)
        self._is_whole &= len(references) <= MAX_CHILDREN and len(paths) <= room
        paths = paths[:room]
        self._visited += len(paths)
        tree.seen.update(paths)
        level = 0 if parent is None else parent.level + 1
        is_in_editor = parent is not None and bool(parent.states >> EDITABLE & 1)
        items = [Item(path, level, is_in_editor) for path in paths]
        (tree.windows if parent is None else parent.children).extend(items)
        return [self._question(tree, item, _STATES, tree.application.states) for item in items]

    def _take_states(self, tree: _Tree, item: Item, states: int) -> list[Question[_Asked]]:
        item.states = states
        application = tree.application
        is_usable = not states & (1 << DEFUNCT | 1 << ICONIFIED)
        if is_usable and application.is_of_gtk_2 and item.level == 1 and _SHOWN_BITS & states == 1 << VISIBLE:
            # PCManFM 1.3.2 says of the icons on the desktop that they are visible, but neither that they show nor
            # what they are.
            item.is_shown, item.role = True, ROLES.index("icon")
            return [self._question(tree, item, _NAME, application.label)]
        item.is_shown = is_usable and bool(states >> SHOWING & 1)
        if not item.is_shown:
            return []
        item.is_in_editor &= bool(states >> EDITABLE & 1)
        further = [
            self._question(tree, item, _ROLE, application.role),
            self._question(tree, item, _NAME, application.label),
        ]
        if item.is_in_editor:
            further.append(self._question(tree, item, _TEXT, application.text))
        return further

    def _go_down(self, tree: _Tree, item: Item) -> list[Question[_Asked]]:
        role = role_name(item.role)
        if role in _LEAVES or (role in _BUTTONS and item.name):
            return []
        if item.level + 1 >= MAX_DEPTH:
            self._is_whole = False
            return []
        return [self._question(tree, item, _CHILDREN, tree.application.children)]

    @staticmethod
    def _question(tree: _Tree, item: Item, kind: int, call: Call) -> Question[_Asked]:
        return tree.application, call, item.path, (kind, tree, item)


def every(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items that show, and those below them, parents first."""
    # With a stack of our own: generators inside each other, as deep as a tree, would cost more than the rest.
    stack = list(reversed(items))
    while stack:
        item = stack.pop()
        if item.is_shown:
            yield item
            stack.extend(reversed(item.children))
