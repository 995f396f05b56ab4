"""From objects that show to nodes: what is in each, what hides it, and in which order they are told."""

from collections.abc import Sequence
from dataclasses import dataclass

from deskfork_guest.accessibility.applications import MAX_TEXT, Application, Inquiry, Question
from deskfork_guest.accessibility.names import state_names
from deskfork_guest.accessibility.screen import Rectangle, find_window, rectangle_of, visible_part
from deskfork_guest.accessibility.tree import Candidate, candidates
from deskfork_guest.accessibility.walk import EMBEDDED, MAX_NAME, Item
from deskfork_guest.accessibility.wire import Malformed, parse_number, parse_rectangle, parse_text
from deskfork_guest.desktop import StackedWindow
from deskfork_guest.schema import AccessibleNode

MAX_NODES = 4500
MAX_CHARACTERS = 1_000_000
"""What all texts may have together; later nodes come without theirs."""
_PLACE, _TEXT, _VALUE = range(3)


@dataclass(slots=True)
class _Seen:
    """A candidate, and what its application says of it."""

    candidate: Candidate
    place: Rectangle | None = None
    """On the screen; later, the part of it that shows."""
    content: str = ""


@dataclass
class _Window:
    """One top-level object, with what is below it."""

    application: Application
    objects: list[_Seen]
    """Itself first."""
    layer: int = 0
    """Its place in the stack of windows; menus are on top."""


_Asked = tuple[int, _Seen]


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
        _Window(application, [_Seen(candidate) for candidate in candidates(item)])
        for application, items in walked
        for item in items
    ]
    is_whole = _cut(windows)
    inquiry.pursue([question for window in windows for question in _questions(window)], _take)
    windows = [window for window in windows if window.objects and window.objects[0].place is not None]
    for window in windows:
        _put_on_screen(window, stack, size)
    windows.sort(key=lambda window: -window.layer)
    mute = _mute(stack, {window.layer for window in windows}, size)
    nodes: list[AccessibleNode] = []
    left = MAX_CHARACTERS
    for window in windows:
        while mute and mute[0][0] > window.layer:
            nodes.append(mute.pop(0)[1])
        # The depths of the nodes that the next one may lie in: objects that cannot be seen are none.
        above: list[int] = []
        for seen in window.objects:
            if seen.place is None:
                continue
            depth = seen.candidate.depth
            while above and above[-1] >= depth:
                above.pop()
            is_whole &= len(seen.content) <= left
            nodes.append(_node(window.application, seen.candidate, seen.place, seen.content[:left], len(above)))
            left = max(0, left - len(seen.content))
            above.append(depth)
    nodes += [node for _, node in mute]
    return nodes, is_whole and not inquiry.silent


def _questions(window: _Window) -> list[Question[_Asked]]:
    application = window.application
    questions: list[Question[_Asked]] = []
    for seen in window.objects:
        candidate, path = seen.candidate, seen.candidate.item.path
        questions.append((application, application.extents, path, (_PLACE, seen)))
        if candidate.wants_text:
            questions.append((application, application.text, path, (_TEXT, seen)))
        elif candidate.wants_value:
            questions.append((application, application.value, path, (_VALUE, seen)))
        else:
            seen.content = "\n".join(candidate.lines)[: MAX_TEXT + 1]
    return questions


def _take(asked: _Asked, raw: bytes) -> tuple[()]:
    kind, seen = asked
    try:
        if kind == _PLACE:
            seen.place = Rectangle(*parse_rectangle(raw))
        elif kind == _TEXT:
            seen.content = parse_text(raw).replace(EMBEDDED, "")[: MAX_TEXT + 1]
        else:
            seen.content = f"{parse_number(raw):g}"
    except Malformed:
        # It has gone, or its application talks nonsense: then it is nowhere, or there is nothing in it.
        return ()
    return ()


def _put_on_screen(window: _Window, stack: Sequence[StackedWindow], size: tuple[int, int]) -> None:
    """Find a window's place in the stack, and what of each of its objects shows."""
    itself = window.objects[0]
    assert itself.place is not None
    number = find_window(stack, window.application.pid, itself.candidate.item.name, itself.place)
    window.layer = len(stack) if number is None else number
    over = [rectangle_of(other) for other in stack[window.layer + 1 :]]
    for seen in window.objects:
        place = seen.place.within(*size) if seen.place is not None else None
        seen.place = visible_part(place, over) if place is not None else None


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
    for done, window in enumerate(sorted(windows, key=lambda each: len(each.objects))):
        share = left // (len(windows) - done)
        is_whole &= len(window.objects) <= share
        del window.objects[share:]
        left -= len(window.objects)
    return is_whole


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
