"""One look at all applications on the accessibility bus, bounded in time and size whatever they answer."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from deskfork_guest.accessibility.applications import (
    MAX_APPLICATIONS,
    ROOT,
    Application,
    Inquiry,
    introduce,
    list_applications,
)
from deskfork_guest.accessibility.bus import Bus
from deskfork_guest.accessibility.describe import describe
from deskfork_guest.accessibility.names import BUSY, role_name
from deskfork_guest.accessibility.walk import Item, Walk, every
from deskfork_guest.desktop import StackedWindow
from deskfork_guest.schema import AccessibilityTree

BUS_SOCKET = Path("/run/user/1000/at-spi/bus_0")
LOOK_S = 12.0
"""How long one look may take."""
ANSWER_S = 4.0
"""For how long no application at all may answer."""
WAKING_S = 15.0
"""How long browsers may take, once, to make trees of their pages."""
POLL_S = 0.3
_DOCUMENTS = frozenset(("document web", "document frame"))


class AccessibilityReader:
    """Looks at the desktop through AT-SPI; the connection is opened at the first look and kept."""

    def __init__(self, bus_socket: Path = BUS_SOCKET) -> None:
        """Name the bus; nothing is opened yet."""
        self._bus_socket = bus_socket
        self._bus: Bus | None = None
        self._known: dict[str, Application] = {}
        self._lock = threading.Lock()

    def read(self, stack: Sequence[StackedWindow], size: tuple[int, int]) -> AccessibilityTree:
        """Look once.

        Args:
            stack: The windows on the screen, from the bottom to the top; what they hide is left out.
            size: The screen's width and height, pixels; what lies beyond is left out.

        Raises:
            BusUnavailable: There is no accessibility bus, or it broke off.
        """
        started = time.monotonic()
        with self._lock:
            bus = self._joined()
            applications, is_complete = self._applications(bus)
            inquiry = Inquiry(bus, LOOK_S, ANSWER_S)
            walked, is_walked = Walk(applications).go(inquiry)
            nodes, is_described = describe(inquiry, walked, stack, size)
        return AccessibilityTree(
            nodes=nodes,
            is_partial=not (is_complete and is_walked and is_described),
            duration_s=round(time.monotonic() - started, 4),
        )

    def close(self) -> None:
        """Leave the bus; the next look joins it again."""
        with self._lock:
            if self._bus is not None:
                self._bus.close()

    def _joined(self) -> Bus:
        if self._bus is None or not self._bus.is_open:
            self._known.clear()
            self._bus = Bus(self._bus_socket, time.monotonic() + ANSWER_S)
        return self._bus

    def _applications(self, bus: Bus) -> tuple[list[Application], bool]:
        """Return the applications, browsers awake, and whether these are all there are."""
        deadline = time.monotonic() + ANSWER_S
        names = list_applications(bus, deadline)
        known = {name: self._known[name] for name in names if name in self._known}
        strangers = [name for name in names if name not in known][: MAX_APPLICATIONS - len(known)]
        fresh = introduce(bus, strangers, deadline) if strangers else []
        # Browsers doze off again when nobody has asked for a while.
        bus.ask_all([(each.attributes, ROOT) for each in known.values() if each.is_browser], deadline)
        is_awake = _wake(bus, [each for each in fresh if each.is_browser])
        self._known = known | {each.name: each for each in fresh}
        return list(self._known.values()), is_awake and len(self._known) == len(names)


def _wake(bus: Bus, browsers: Sequence[Application]) -> bool:
    """Make browsers tell what is in their pages, and wait until they do; return whether all did."""
    if not browsers:
        return True
    deadline = time.monotonic() + WAKING_S
    # Chromium takes whoever asks for attributes for a screen reader, and only then makes its trees.
    bus.ask_all([(browser.attributes, ROOT) for browser in browsers], deadline)
    sizes: list[int] = []
    while time.monotonic() < deadline:
        walked, _ = Walk(browsers).go(Inquiry(bus, deadline - time.monotonic(), WAKING_S))
        found = [list(every(windows)) for _, windows in walked]
        before, sizes = sizes, [len(items) for items in found]
        # A tree comes in pieces: it is there once it has a document that has come to rest, and does not grow any more.
        if sizes == before and all(_has_page(items) for items in found):
            return True
        bus.rest(min(deadline, time.monotonic() + POLL_S))
    return False


def _has_page(items: Sequence[Item]) -> bool:
    pages = [item for item in items if role_name(item.role) in _DOCUMENTS]
    return any(page.children for page in pages) and not any(page.states >> BUSY & 1 for page in pages)
