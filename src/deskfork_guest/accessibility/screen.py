"""Where on the screen something is, and whether anything of it can be seen there."""

from collections.abc import Sequence
from typing import NamedTuple

from deskfork_guest.desktop import StackedWindow

_FRAME_PX = 150
"""By how much an application and X may differ on where a window begins and ends: shadows and title bars."""
_SLIVER_PX = 6


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

    def without(self, other: "Rectangle") -> "Rectangle | None":
        """Return the largest rectangle that is left of it beside `other`, or None."""
        right, bottom = self.x + self.width, self.y + self.height
        other_right, other_bottom = other.x + other.width, other.y + other.height
        if other.x >= right or other.y >= bottom or other_right <= self.x or other_bottom <= self.y:
            return self
        rest = (
            Rectangle(self.x, self.y, other.x - self.x, self.height),
            Rectangle(other_right, self.y, right - other_right, self.height),
            Rectangle(self.x, self.y, self.width, other.y - self.y),
            Rectangle(self.x, other_bottom, self.width, bottom - other_bottom),
        )
        left = [each for each in rest if each.width > 0 and each.height > 0]
        return max(left, key=lambda each: each.width * each.height, default=None)


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


def visible_part(place: Rectangle, above: Sequence[Rectangle]) -> Rectangle | None:
    """Return what of something shows beside the windows that lie above it: its centre can be clicked.

    Args:
        place: Where it is.
        above: The windows.

    Returns:
        A rectangle, as large as can be had by cutting straight; None if what is left is no more than a sliver.
    """
    part: Rectangle | None = place
    for window in above:
        part = part.without(window) if part is not None else None
    if part is None or part.width < min(_SLIVER_PX, place.width) or part.height < min(_SLIVER_PX, place.height):
        return None
    return part
