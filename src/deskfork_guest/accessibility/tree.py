"""Which of an application's objects are worth telling of, in the order of its tree."""

from collections import defaultdict
from dataclasses import dataclass

from deskfork_guest.accessibility.items import Item
from deskfork_guest.accessibility.names import (
    DEFUNCT,
    EDITABLE,
    FOCUSABLE,
    FOCUSED,
    ICONIFIED,
    SELECTED,
    SHOWING,
    role_name,
)

MAX_DEPTH = 200
ROOT = "/org/a11y/atspi/accessible/root"
_LAYOUT_ROLES = (
    "invalid,filler,glass pane,grouping,internal frame,landmark,layered pane,list,list box,option pane,panel,root pane,"
    "scroll pane,section,split pane,static,table,table row,tree,unknown,viewport,redundant object,extended,paragraph,"
    "label,separator,block quote,definition,description list,description term,description value,form,article,ruler"
)
_LAYOUT = frozenset(_LAYOUT_ROLES.split(","))
"""Roles of what only arranges other things, unless it has a name, a text, or the user can go there."""
_TEXTUAL = frozenset(("text", "entry", "terminal", "password text", "spin button", "editbar", "autocomplete"))
"""Roles whose text is more than their name."""
_CONTROL_ROLES = (
    "check box,check menu item,combo box,entry,icon,link,list item,menu,menu item,page tab,push button,"
    "push button menu,radio button,radio menu item,slider,spin button,table cell,text,toggle button,tree item"
)
_CONTROLS = frozenset(_CONTROL_ROLES.split(","))


@dataclass(slots=True)
class Candidate:
    """An object that may be shown."""

    item: Item
    depth: int
    """Candidates above it in the tree."""
    window: int
    """Which of the application's top-level windows it is in, counted from 0."""

    @property
    def role(self) -> str:
        """Its role's name."""
        return role_name(self.item.role)

    @property
    def wants_text(self) -> bool:
        """Whether its text says more than its name."""
        return self.item.has_text and (self.role in _TEXTUAL or bool(self.item.states >> EDITABLE & 1))

    @property
    def is_control(self) -> bool:
        """Whether it is something to click on or to type into."""
        # Web pages make controls of what has no such role, and let the focus go there.
        return self.role in _CONTROLS or (self.role in _LAYOUT and bool(self.item.states >> FOCUSABLE & 1))


def is_telling(item: Item, parent_name: str) -> bool:
    """Whether an object is more than arrangement, or than its parent's label once more."""
    role = role_name(item.role)
    if role in ("static", "label") and item.name == parent_name:
        return False
    if item.name.strip() or item.states & (1 << FOCUSED | 1 << SELECTED | 1 << FOCUSABLE):
        return True
    return role not in _LAYOUT


def candidates(items: list[Item]) -> list[Candidate]:
    """Return the objects of an application that show and tell something, parents before children.

    Objects that cannot be reached from the application, or form circles, or lie deeper than MAX_DEPTH, are left out.
    """
    children: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        children[item.parent].append(item)
    found: list[Candidate] = []
    windows = sorted(children[ROOT], key=_place)
    # Depth first, with a stack of our own: an application's tree may be as deep as it likes.
    stack = [(window, 0, 0, number, "") for number, window in reversed(list(enumerate(windows)))]
    seen = {ROOT}
    while stack:
        item, level, depth, window, parent_name = stack.pop()
        if item.path in seen or level > MAX_DEPTH:
            continue
        seen.add(item.path)
        if item.states & (1 << DEFUNCT | 1 << ICONIFIED):
            continue
        is_shown = bool(item.states >> SHOWING & 1)
        if level == 0 and not is_shown:
            continue
        if is_shown and (level == 0 or is_telling(item, parent_name)):
            found.append(Candidate(item, depth, window))
            depth += 1
            parent_name = item.name
        # Children may show where their parent has no size of its own.
        below = sorted(children[item.path], key=_place)
        stack.extend((child, level + 1, depth, window, parent_name) for child in reversed(below))
    return found


def _place(item: Item) -> int:
    return item.index if item.index >= 0 else 1 << 31
