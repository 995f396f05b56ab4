"""Where on the screen something is, and whether anything of it can be seen there."""

from collections.abc import Sequence
from typing import NamedTuple

from deskfork_guest.desktop import StackedWindow

_FRAME_PX = 150
"""By how much an application and X may differ on where a window begins and ends: shadows and title bars."""


class Rectangle(NamedTuple):
    """Pixels of the screen: left and top edge, size."""

    x: int
    y: int
    width: int
    height: int

    def within(self, width: int, height: int) -> "Rectangle | None":
        """Return the part of it that is on a screen of that size, or None."""
        left, top = max(0, self.x), max(0, self.y)
        right, bottom = min(width, self.x + self.width), min(height, self.y + self.height)
        return Rectangle(left, top, right - left, bottom - top) if right > left and bottom > top else None

    def covers(self, other: "Rectangle") -> bool:
        """Whether all of `other` lies in it."""
        right, bottom = other.x + other.width, other.y + other.height
        return (
            self.x <= other.x and self.y <= other.y and right <= self.x + self.width and bottom <= self.y + self.height
        )

    def has(self, x: float, y: float) -> bool:
        """Whether the point lies in it."""
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height


def rectangle_of(window: StackedWindow) -> Rectangle:
    """Return where a window is."""
    return Rectangle(window.x, window.y, window.width_px, window.height_px)


def find_window(stack: Sequence[StackedWindow], pid: int, title: str, place: Rectangle) -> int | None:
    """Return which of the windows on the screen an application's top-level object is.

    Args:
        stack: The windows, from the bottom to the top.
        pid: The application's process.
        title: The object's name.
        place: Where the object says that it is.

    Returns:
        An index into `stack`; None for what the window manager does not manage, such as an open menu.
    """
    own = [number for number, window in enumerate(stack) if window.pid == pid]

    def likeness(number: int) -> tuple[bool, int]:
        window = stack[number]
        apart = abs(window.x - place.x) + abs(window.y - place.y)
        apart += abs(window.width_px - place.width) + abs(window.height_px - place.height)
        return window.title == title, -apart

    best = max(own, key=likeness, default=None)
    if best is None:
        return None
    is_titled, apart = likeness(best)
    # Menus of an application that has windows: another place, and mostly no name.
    return best if is_titled or -apart < _FRAME_PX else None


def is_covered_by(place: Rectangle, above: Sequence[Rectangle]) -> bool:
    """Whether windows that lie above something hide its centre, which is where one would click."""
    x, y = place.x + place.width / 2, place.y + place.height / 2
    return any(window.has(x, y) for window in above)


def is_hidden_by(place: Rectangle, above: Sequence[Rectangle]) -> bool:
    """Whether a window that lies above another hides all of it."""
    return any(window.covers(place) for window in above)
