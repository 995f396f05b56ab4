"""From objects that show to nodes: what is in each, what hides it, and in which order they are told."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from deskfork_guest.accessibility.applications import MAX_TEXT, Application, Inquiry
from deskfork_guest.accessibility.bus import Call
from deskfork_guest.accessibility.names import state_names
from deskfork_guest.accessibility.screen import Rectangle, find_window, rectangle_of, visible_part
from deskfork_guest.accessibility.tree import Candidate, candidates
from deskfork_guest.accessibility.walk import Item
from deskfork_guest.accessibility.wire import Malformed, parse_number, parse_text
from deskfork_guest.desktop import StackedWindow
from deskfork_guest.schema import AccessibleNode

MAX_NODES = 4500
MAX_NAME = 500
MAX_CHARACTERS = 1_000_000
"""What all texts may have together; later nodes come without theirs."""
_EMBEDDED = "\ufffc"
"""Stands in a text for an object that is a node of its own."""


@dataclass
class _Window:
    """One top-level object, with what is below it that can be seen."""

    application: Application
    layer: int
    """Its place in the stack of windows; menus are on top."""
    seen: list[tuple[Candidate, Rectangle]] = field(default_factory=list)
    """Candidates, and the part of each that shows."""


def describe(
    inquiry: Inquiry,
    walked: Sequence[tuple[Application, list[Item]]],
    stack: Sequence[StackedWindow],
    size: tuple[int, int],
) -> tuple[list[AccessibleNode], bool]:
    """Make nodes of what can be seen, and ask what is in it.

    Args:
        inquiry: For asking.
        walked: Each application with its top-level objects.
        stack: The windows on the screen, from the bottom to the top.
        size: The screen's width and height, pixels.

    Returns:
        The nodes, window by window from the top of the stack to its bottom, and whether that is all there are.

    Raises:
        BusUnavailable: The bus broke off.
    """
    windows = [
        _look_at(application, item, item.place, stack, size)
        for application, items in walked
        for item in items
        if item.place is not None
    ]
    windows.sort(key=lambda window: -window.layer)
    is_whole = _cut(windows)
    contents = _contents(inquiry, windows)
    mute = _mute(stack, {window.layer for window in windows}, size)
    nodes: list[AccessibleNode] = []
    characters = 0
    for window in windows:
        while mute and mute[0][0] > window.layer:
            nodes.append(mute.pop(0)[1])
        # The depths of the nodes that the next one may lie in: candidates that cannot be seen are none.
        above: list[int] = []
        for candidate, place in window.seen:
            content = next(contents)
            characters += len(content)
            if characters > MAX_CHARACTERS:
                is_whole, content = False, ""
            while above and above[-1] >= candidate.depth:
                above.pop()
            nodes.append(_node(window.application, candidate, place, content, len(above)))
            above.append(candidate.depth)
    nodes += [node for _, node in mute]
    return nodes, is_whole and not inquiry.silent


def _look_at(
    application: Application, item: Item, claimed: Rectangle, stack: Sequence[StackedWindow], size: tuple[int, int]
) -> _Window:
    number = find_window(stack, application.pid, item.name, claimed)
    window = _Window(application, len(stack) if number is None else number)
    over = [rectangle_of(other) for other in stack[window.layer + 1 :]]
    for candidate in candidates(item):
        place = candidate.item.place.within(*size) if candidate.item.place is not None else None
        part = visible_part(place, over) if place is not None else None
        if part is not None:
            window.seen.append((candidate, part))
    return window


def _mute(stack: Sequence[StackedWindow], telling: set[int], size: tuple[int, int]) -> list[tuple[int, AccessibleNode]]:
    """Return nodes for windows of which no application tells anything, and their places in the stack, from the top."""
    found = []
    for layer in sorted(set(range(len(stack))) - telling, reverse=True):
        window = stack[layer]
        place = rectangle_of(window).within(*size)
        part = visible_part(place, [rectangle_of(other) for other in stack[layer + 1 :]]) if place else None
        if part is not None:
            name = clipped(window.title, MAX_NAME)
            node = AccessibleNode(
                depth=0,
                role="frame",
                name=name,
                text="",
                states=[],
                x=part.x,
                y=part.y,
                width_px=part.width,
                height_px=part.height,
                app="",
                clickable=False,
            )
            found.append((layer, node))
    return found


def _cut(windows: Sequence[_Window]) -> bool:
    """Cut what is beyond MAX_NODES from the windows that have most, and return whether there was nothing to cut."""
    left, is_whole = MAX_NODES, True
    for done, window in enumerate(sorted(windows, key=lambda each: len(each.seen))):
        share = left // (len(windows) - done)
        is_whole &= len(window.seen) <= share
        del window.seen[share:]
        left -= len(window.seen)
    return is_whole


def _contents(inquiry: Inquiry, windows: Sequence[_Window]) -> Iterator[str]:
    """Yield what is in each of the candidates that are seen."""
    questions: list[tuple[Application, Call, str]] = []
    for window in windows:
        for candidate, _ in window.seen:
            if candidate.wants_text:
                questions.append((window.application, window.application.text, candidate.item.path))
            elif candidate.wants_value:
                questions.append((window.application, window.application.value, candidate.item.path))
    replies = iter(inquiry.ask(questions))
    for window in windows:
        for candidate, _ in window.seen:
            if candidate.wants_text:
                yield _text(next(replies))
            elif candidate.wants_value:
                yield _number(next(replies))
            else:
                yield ""


def _text(raw: bytes | None) -> str:
    try:
        return parse_text(raw or b"").replace(_EMBEDDED, "")[: MAX_TEXT + 1]
    except Malformed:
        return ""


def _number(raw: bytes | None) -> str:
    try:
        return f"{parse_number(raw or b''):g}"
    except Malformed:
        return ""


def _node(application: Application, candidate: Candidate, place: Rectangle, content: str, depth: int) -> AccessibleNode:
    name = candidate.item.name
    if candidate.is_named_by_text:
        name, content = content, ""
    return AccessibleNode(
        depth=depth,
        role=candidate.role,
        name=clipped(name, MAX_NAME),
        text=clipped(content, MAX_TEXT),
        states=state_names(candidate.item.states, is_control=candidate.is_control),
        x=place.x,
        y=place.y,
        width_px=place.width,
        height_px=place.height,
        app=clipped(application.title, MAX_NAME),
        clickable=candidate.is_control,
    )


def clipped(text: str, limit: int) -> str:
    """Return `text`, its end replaced by an ellipsis if it has more than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
