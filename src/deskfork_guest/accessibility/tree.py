"""Which of an application's objects are worth telling of."""

from dataclasses import dataclass, field

from deskfork_guest.accessibility.names import EDITABLE, FOCUSABLE, FOCUSED, SELECTED, role_name
from deskfork_guest.accessibility.walk import Item

_LAYOUT_ROLES = (
    "invalid,filler,glass pane,grouping,internal frame,landmark,layered pane,list,list box,option pane,panel,root pane,"
    "scroll pane,section,split pane,static,table,table cell,table row,tree,unknown,viewport,redundant object,extended,"
    "paragraph,label,separator,block quote,definition,description list,description term,description value,form,article,"
    "ruler,tool bar,page tab list,heading,notification"
)
_LAYOUT = frozenset(_LAYOUT_ROLES.split(","))
"""Roles of what only arranges other things, unless it has a name or the focus."""
_MAKESHIFT = frozenset(("article", "heading", "landmark", "list item", "paragraph", "section", "static", "unknown"))
"""Roles of what web pages make controls of, by letting the focus go there."""
_WRAPPERS = frozenset(("filler", "panel", "section"))
_TEXTUAL = frozenset(("text", "entry", "terminal", "password text", "spin button", "editbar", "autocomplete"))
"""Roles whose text is more than their name."""
_VALUED = frozenset(("slider", "progress bar", "level bar", "scroll bar", "dial", "rating"))
_CONTROL_ROLES = (
    "check box,check menu item,combo box,entry,icon,link,list item,menu,menu item,page tab,push button,"
    "push button menu,radio button,radio menu item,slider,spin button,table cell,text,toggle button,tree item"
)
_CONTROLS = frozenset(_CONTROL_ROLES.split(","))


@dataclass(slots=True)
class Candidate:
    """An object that shows and tells something."""

    item: Item
    role: str
    depth: int
    """Candidates above it in the tree."""
    is_control: bool
    """Whether it is something to click on or to type into."""
    lines: list[str] = field(default_factory=list)
    """Of an editor whose lines are objects of their own."""

    @property
    def is_named_by_text(self) -> bool:
        """Whether its text stands for the name that it lacks: GTK's icons have none."""
        return self.role == "icon" and not self.item.name

    @property
    def wants_text(self) -> bool:
        """Whether its text says more than its name."""
        if self.lines:
            return False
        if self.role in _TEXTUAL or self.is_named_by_text:
            return True
        return bool(self.item.states >> EDITABLE & 1) and self.role != "static"

    @property
    def wants_value(self) -> bool:
        """Whether it stands for a number."""
        return self.role in _VALUED


def candidates(window: Item) -> list[Candidate]:
    """Return a top-level object and what below it is telling, parents before children."""
    found: list[Candidate] = []
    # With a stack of our own: an application's tree may be deep.
    stack: list[tuple[Item, int, str, Candidate | None]] = [(window, 0, "", None)]
    while stack:
        item, depth, parent_name, editor = stack.pop()
        if not item.is_shown:
            continue
        if item.content and editor is not None:
            editor.lines.append(item.content.strip("\n"))
            continue
        role = role_name(item.role)
        if item is window or _is_telling(item, role, parent_name):
            candidate = Candidate(item, role, depth, is_control=role in _CONTROLS)
            found.append(candidate)
            depth, parent_name = depth + 1, item.name
            if item.states >> EDITABLE & 1 and editor is None:
                editor = candidate
        stack.extend((child, depth, parent_name, editor) for child in reversed(item.children))
    _find_makeshift_controls(found)
    return found


def _is_telling(item: Item, role: str, parent_name: str) -> bool:
    """Whether an object is more than arrangement, or than its parent's label once more."""
    if role in ("static", "label") and item.name == parent_name:
        return False
    if item.states & (1 << FOCUSED | 1 << SELECTED) or role not in _LAYOUT:
        return True
    if role in _MAKESHIFT and item.states >> FOCUSABLE & 1:
        return True
    # A wrapper has the name of what it wraps.
    is_wrapper = role in _WRAPPERS and any(child.name == item.name for child in item.children)
    return bool(item.name.strip()) and not is_wrapper


def _find_makeshift_controls(found: list[Candidate]) -> None:
    """Make controls of what can have the focus, unless there are controls in it: then it only passes the focus on."""
    # At each depth, whether there is a control below the candidate that comes next, going backwards.
    holds_control = [False] * (max((candidate.depth for candidate in found), default=0) + 2)
    for candidate in reversed(found):
        depth = candidate.depth
        is_focusable = bool(candidate.item.states >> FOCUSABLE & 1)
        if candidate.role in _MAKESHIFT and is_focusable and not holds_control[depth + 1]:
            candidate.is_control = True
        holds_control[depth] |= candidate.is_control or holds_control[depth + 1]
        holds_control[depth + 1] = False
