"""From objects that may show to nodes: where each is on the screen, what is in it, and what hides it."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from deskfork_guest.accessibility.applications import MAX_TEXT, Application
from deskfork_guest.accessibility.bus import Bus, Call
from deskfork_guest.accessibility.names import state_names
from deskfork_guest.accessibility.screen import (
    Rectangle,
    find_window,
    is_covered_by,
    is_hidden_by,
    rectangle_of,
)
from deskfork_guest.accessibility.tree import Candidate
from deskfork_guest.accessibility.wire import Body, Malformed
from deskfork_guest.desktop import StackedWindow
from deskfork_guest.schema import AccessibleNode

MAX_NODES = 5000
MAX_NAME = 500
MAX_CHARACTERS = 1_000_000
"""What all texts may have together; later nodes come without theirs."""
_EXTENTS = struct.Struct("<iiii")
_NUMBER = struct.Struct("<d")
_EMBEDDED = "\ufffc"
"""Stands in a text for an object that is a node of its own."""

Shown = tuple[Application, list[Candidate]]


class _Answers(NamedTuple):
    """What an application said of one candidate; None for what it did not, or was not asked."""

    place: Rectangle | None
    content: str | None


@dataclass
class _Window:
    """One top-level object and what is told of it."""

    layer: int
    """Its place in the stack of windows; menus are on top."""
    above: list[Rectangle]
    nodes: list[AccessibleNode]
    depths: list[int]
    """Of the candidates that the next node may lie in."""


def describe(
    bus: Bus, shown: Sequence[Shown], stack: Sequence[StackedWindow], size: tuple[int, int], deadline: float
) -> tuple[list[AccessibleNode], bool]:
    """Ask where candidates are and what is in them, and make nodes of those that can be seen.

    Args:
        bus: The accessibility bus.
        shown: Each application with its candidates.
        stack: The windows on the screen, from the bottom to the top.
        size: The screen's width and height, pixels.
        deadline: When to stop waiting for answers, on `time.monotonic`.

    Returns:
        The nodes, window by window from the top of the stack to its bottom, and whether that is all there are.

    Raises:
        BusUnavailable: The bus broke off.
    """
    told = _within_limit(shown)
    answers = _ask(bus, told, deadline)
    is_whole = sum(len(found) for _, found in told) == sum(len(found) for _, found in shown)
    windows: list[_Window] = []
    characters = 0
    for application, found in told:
        window: _Window | None = None
        for candidate in found:
            place, content = next(answers)
            if candidate.depth == 0:
                window = _window(application, candidate, place, stack) if place is not None else None
                windows += [window] if window is not None else []
            if place is None or window is None:
                is_whole = False
                continue
            characters += len(content or "")
            if characters > MAX_CHARACTERS:
                is_whole, content = False, ""
            on_screen = place.within(*size)
            is_hidden = is_hidden_by if candidate.depth == 0 else is_covered_by
            if on_screen is not None and not is_hidden(on_screen, window.above):
                _add(window, application, candidate, on_screen, content or "")
    windows.sort(key=lambda each: -each.layer)
    return [node for each in windows for node in each.nodes], is_whole


def _within_limit(shown: Sequence[Shown]) -> list[Shown]:
    """Cut what is beyond MAX_NODES from the applications that have most."""
    left, share = MAX_NODES, {}
    for waiting, (application, found) in enumerate(sorted(shown, key=lambda each: len(each[1])), start=-len(shown)):
        share[application.name] = min(len(found), left // -waiting)
        left -= share[application.name]
    return [(application, found[: share[application.name]]) for application, found in shown]


def _ask(bus: Bus, told: Sequence[Shown], deadline: float) -> Iterator[_Answers]:
    calls: list[tuple[Call, str]] = []
    for application, found in told:
        for candidate in found:
            path = candidate.item.path
            calls.append((application.extents, path))
            if candidate.wants_text:
                calls.append((application.text, path))
            elif candidate.item.has_value:
                calls.append((application.value, path))
    replies = iter(bus.ask_all(calls, deadline))
    for _, found in told:
        for candidate in found:
            place = _place(next(replies))
            content = None
            if candidate.wants_text:
                content = _text(next(replies))
            elif candidate.item.has_value:
                content = _number(next(replies))
            yield _Answers(place, content)


def _place(raw: bytes | None) -> Rectangle | None:
    return Rectangle(*_EXTENTS.unpack(raw)) if raw is not None and len(raw) == _EXTENTS.size else None


def _text(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else Body(raw).text()[: MAX_TEXT + 1].replace(_EMBEDDED, "")
    except Malformed:
        return None


def _number(raw: bytes | None) -> str | None:
    # A variant that holds a double.
    if raw is None or raw[:3] != b"\x01d\0" or len(raw) != 8 + _NUMBER.size:
        return None
    return f"{_NUMBER.unpack_from(raw, 8)[0]:g}"


def _window(
    application: Application, candidate: Candidate, place: Rectangle, stack: Sequence[StackedWindow]
) -> _Window:
    number = find_window(stack, application.pid, candidate.item.name, place)
    layer = len(stack) if number is None else number
    return _Window(layer, [rectangle_of(window) for window in stack[layer + 1 :]], [], [])


def _add(window: _Window, application: Application, candidate: Candidate, place: Rectangle, content: str) -> None:
    while window.depths and window.depths[-1] >= candidate.depth:
        window.depths.pop()
    item, is_control = candidate.item, candidate.is_control
    window.nodes.append(
        AccessibleNode(
            depth=len(window.depths),
            role=candidate.role,
            name=clipped(item.name, MAX_NAME),
            text=clipped(content, MAX_TEXT),
            states=state_names(item.states, is_control=is_control),
            x=place.x,
            y=place.y,
            width_px=place.width,
            height_px=place.height,
            app=clipped(application.title, MAX_NAME),
            clickable=is_control,
        )
    )
    window.depths.append(candidate.depth)


def clipped(text: str, limit: int) -> str:
    """Return `text`, its end replaced by an ellipsis if it has more than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
