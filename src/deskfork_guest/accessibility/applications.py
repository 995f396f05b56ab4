"""The applications on the accessibility bus, and what is asked of them."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from deskfork_guest.accessibility.bus import Bus, BusUnavailable, Call
from deskfork_guest.accessibility.tree import ROOT
from deskfork_guest.accessibility.wire import Body, Malformed, make_call

MAX_TEXT = 2000
"""How much of an object's text is asked for, characters."""
CACHE = "/org/a11y/atspi/cache"
_REGISTRY = "org.a11y.atspi.Registry"
_DAEMON = "org.freedesktop.DBus"
_DAEMON_PATH = "/org/freedesktop/DBus"
_ACCESSIBLE = "org.a11y.atspi.Accessible"
_ON_SCREEN = struct.pack("<I", 0)
_TEXT_RANGE = struct.pack("<ii", 0, MAX_TEXT + 1)


@dataclass(slots=True)
class Application:
    """A program on the bus, and the calls to its objects."""

    name: str
    """On the bus."""
    pid: int
    toolkit: str
    title: str
    items: Call = field(init=False)
    attributes: Call = field(init=False)
    extents: Call = field(init=False)
    text: Call = field(init=False)
    value: Call = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the calls."""
        self.items = make_call(self.name, "org.a11y.atspi.Cache", "GetItems")
        self.attributes = make_call(self.name, _ACCESSIBLE, "GetAttributes")
        self.extents = make_call(self.name, "org.a11y.atspi.Component", "GetExtents", "u", _ON_SCREEN)
        self.text = make_call(self.name, "org.a11y.atspi.Text", "GetText", "ii", _TEXT_RANGE)
        self.value = _property(self.name, "org.a11y.atspi.Value", "CurrentValue")

    @property
    def is_browser(self) -> bool:
        """Whether it makes trees of its pages only once somebody has asked for them."""
        return self.toolkit == "Chromium"


def list_applications(bus: Bus, deadline: float) -> list[str]:
    """Return the names that applications have on the bus.

    Raises:
        BusUnavailable: The registry does not tell.
    """
    (raw,) = bus.ask_all([(make_call(_REGISTRY, _ACCESSIBLE, "GetChildren"), ROOT)], deadline)
    if raw is None:
        raise BusUnavailable("the registry of accessible applications does not answer")
    try:
        return list(dict.fromkeys(name for name, _ in Body(raw).references()))
    except Malformed as exc:
        raise BusUnavailable(f"the registry of accessible applications: {exc}") from exc


def introduce(bus: Bus, names: Sequence[str], deadline: float) -> list[Application]:
    """Ask the applications of these names who they are; those that do not say are left out."""
    calls: list[tuple[Call, str]] = []
    for name in names:
        whose = make_call(_DAEMON, _DAEMON, "GetConnectionUnixProcessID", "s", _texts(name))
        calls += [
            (whose, _DAEMON_PATH),
            (_property(name, "org.a11y.atspi.Application", "ToolkitName"), ROOT),
            (_property(name, _ACCESSIBLE, "Name"), ROOT),
        ]
    replies = bus.ask_all(calls, deadline)
    found = []
    for n, name in enumerate(names):
        pid, toolkit, title = replies[3 * n : 3 * n + 3]
        if pid is None or toolkit is None or title is None:
            continue
        try:
            found.append(Application(name, Body(pid).u32(), Body(toolkit).variant_text(), Body(title).variant_text()))
        except Malformed:
            continue
    return found


def _property(destination: str, interface: str, name: str) -> Call:
    return make_call(destination, "org.freedesktop.DBus.Properties", "Get", "ss", _texts(interface, name))


def _texts(*texts: str) -> bytes:
    """Marshal strings, as a call's arguments."""
    body = b""
    for text in texts:
        raw = text.encode()
        body += bytes(-len(body) % 4) + struct.pack("<I", len(raw)) + raw + b"\0"
    return body
