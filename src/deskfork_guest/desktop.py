"""Reading the X display: windows, pointer, screen. Nothing here executes a program or changes the desktop."""

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from Xlib import X
from Xlib.display import Display
from Xlib.error import BadDrawable, BadWindow, ConnectionClosedError, DisplayError, XError

from deskfork_guest.schema import Desktop, Pointer, Window

MAX_PROPERTY_WORDS = 64 * 1024
MAX_WINDOWS = 256
MAX_TEXT = 1000


class DesktopUnavailable(Exception):
    """The X server does not answer."""


@dataclass(frozen=True)
class StackedWindow:
    """One window that is on the screen: the panel and the background are such, minimised windows are not."""

    title: str
    pid: int | None
    x: int
    y: int
    width_px: int
    height_px: int


class DesktopReader:
    """One connection to the X server, opened at first use and again after it was lost."""

    def __init__(self, display_name: str) -> None:
        self._display_name = display_name
        self._socket = Path(f"/tmp/.X11-unix/X{display_name.removeprefix(':')}")
        self._display: Display | None = None
        self._lock = threading.Lock()

    def read(self) -> Desktop:
        """Return screen size, pointer and windows.

        Raises:
            DesktopUnavailable: The X server does not answer.
        """
        with self._connection() as display:
            root = display.screen().root
            geometry = root.get_geometry()
            pointer = root.query_pointer()
            active_id = _cardinals(display, root, "_NET_ACTIVE_WINDOW")[:1]
            windows = [
                window
                for window_id in _cardinals(display, root, "_NET_CLIENT_LIST_STACKING")[:MAX_WINDOWS]
                if (window := _window(display, window_id, is_active=[window_id] == active_id)) is not None
            ]
        return Desktop(
            width_px=geometry.width,
            height_px=geometry.height,
            pointer=Pointer(x=pointer.root_x, y=pointer.root_y),
            active_window=next((window.title for window in windows if window.active), None),
            windows=windows,
        )

    def stack(self) -> list[StackedWindow]:
        """Return what lies on the screen, from the bottom to the top.

        Raises:
            DesktopUnavailable: The X server does not answer.
        """
        with self._connection() as display:
            listed = _cardinals(display, display.screen().root, "_NET_CLIENT_LIST_STACKING")[:MAX_WINDOWS]
            return [found for window_id in listed if (found := _stacked(display, window_id)) is not None]

    def size(self) -> tuple[int, int]:
        """Return the screen's width and height, pixels.

        Raises:
            DesktopUnavailable: The X server does not answer.
        """
        with self._connection() as display:
            geometry = display.screen().root.get_geometry()
            return geometry.width, geometry.height

    def has_session(self) -> bool:
        """Whether a window manager runs and a panel keeps its strip of the screen.

        Raises:
            DesktopUnavailable: The X server does not answer.
        """
        with self._connection() as display:
            root = display.screen().root
            work_area = _cardinals(display, root, "_NET_WORKAREA")
            has_panel = len(work_area) >= 4 and work_area[3] < root.get_geometry().height
            return bool(_cardinals(display, root, "_NET_SUPPORTING_WM_CHECK")) and has_panel

    def screenshot_png(self) -> bytes:
        """Return the screen as PNG.

        Raises:
            DesktopUnavailable: The X server does not answer.
        """
        with self._connection() as display:
            root = display.screen().root
            geometry = root.get_geometry()
            raw = root.get_image(0, 0, geometry.width, geometry.height, X.ZPixmap, 0xFFFFFFFF).data
        image = Image.frombytes("RGB", (geometry.width, geometry.height), raw, "raw", "BGRX")
        stream = io.BytesIO()
        # Under emulation zlib's default level takes over a second for a screen; level 1 costs a tenth of it.
        image.save(stream, "PNG", compress_level=1)
        return stream.getvalue()

    @contextmanager
    def _connection(self) -> Iterator[Display]:
        with self._lock:
            try:
                if self._display is None:
                    if not self._socket.is_socket():  # Xlib would leak a socket of its own at each attempt
                        raise FileNotFoundError(f"there is no {self._socket}")
                    self._display = Display(self._display_name)
                yield self._display
            except (ConnectionClosedError, DisplayError, XError, OSError) as exc:
                self._display = None
                raise DesktopUnavailable(f"{self._display_name}: {exc}") from exc


def _cardinals(display: Display, window: object, name: str) -> list[int]:
    value = window.get_full_property(display.intern_atom(name), X.AnyPropertyType, MAX_PROPERTY_WORDS)  # type: ignore[attr-defined]
    return [int(word) for word in value.value] if value is not None and value.format == 32 else []


def _text(display: Display, window: object, name: str) -> str:
    value = window.get_full_property(display.intern_atom(name), X.AnyPropertyType, MAX_PROPERTY_WORDS)  # type: ignore[attr-defined]
    if value is None or value.format != 8:
        return ""
    raw = value.value if isinstance(value.value, bytes) else str(value.value).encode()
    return raw.decode("utf-8", "replace")[:MAX_TEXT]


def _window(display: Display, window_id: int, *, is_active: bool) -> Window | None:
    """Describe one window, or None if it is the panel or the background, or was closed while we looked."""
    window = display.create_resource_object("window", window_id)
    furniture = {display.intern_atom("_NET_WM_WINDOW_TYPE_DOCK"), display.intern_atom("_NET_WM_WINDOW_TYPE_DESKTOP")}
    try:
        if furniture.intersection(_cardinals(display, window, "_NET_WM_WINDOW_TYPE")):
            return None
        geometry = window.get_geometry()
        origin = window.translate_coords(display.screen().root, 0, 0)
        pids = _cardinals(display, window, "_NET_WM_PID")
        return Window(
            id=window_id,
            title=_text(display, window, "_NET_WM_NAME") or _text(display, window, "WM_NAME"),
            wm_class=_text(display, window, "WM_CLASS").rstrip("\0").rpartition("\0")[2],
            pid=pids[0] if pids else None,
            # translate_coords tells where the root's origin lies as seen from the window.
            x=-origin.x,
            y=-origin.y,
            width_px=geometry.width,
            height_px=geometry.height,
            active=is_active,
        )
    except (BadWindow, BadDrawable):
        return None


def _stacked(display: Display, window_id: int) -> StackedWindow | None:
    """Describe one window, or None if it is minimised, or was closed while we looked."""
    window = display.create_resource_object("window", window_id)
    try:
        if window.get_attributes().map_state != X.IsViewable:
            return None
        geometry = window.get_geometry()
        origin = window.translate_coords(display.screen().root, 0, 0)
        pids = _cardinals(display, window, "_NET_WM_PID")
        title = _text(display, window, "_NET_WM_NAME") or _text(display, window, "WM_NAME")
    except (BadWindow, BadDrawable):
        return None
    return StackedWindow(title, pids[0] if pids else None, -origin.x, -origin.y, geometry.width, geometry.height)
