"""The applications on the accessibility bus, and what is asked of them."""

import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from deskfork_guest.accessibility.bus import Bus, BusUnavailable, Call
from deskfork_guest.accessibility.wire import Malformed, make_call, parse_references, parse_u32, parse_variant_text

T = TypeVar("T")
MAX_TEXT = 2000
"""How much of an object's text is asked for, characters."""
MAX_APPLICATIONS = 64
ROOT = "/org/a11y/atspi/accessible/root"
"""The object that is the application itself."""
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
    attributes: Call = field(init=False)
    children: Call = field(init=False)
    states: Call = field(init=False)
    role: Call = field(init=False)
    label: Call = field(init=False)
    extents: Call = field(init=False)
    text: Call = field(init=False)
    value: Call = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the calls."""
        self.attributes = make_call(self.name, _ACCESSIBLE, "GetAttributes")
        self.children = make_call(self.name, _ACCESSIBLE, "GetChildren")
        self.states = make_call(self.name, _ACCESSIBLE, "GetState")
        self.role = make_call(self.name, _ACCESSIBLE, "GetRole")
        self.label = _property(self.name, _ACCESSIBLE, "Name")
        self.extents = make_call(self.name, "org.a11y.atspi.Component", "GetExtents", "u", _ON_SCREEN)
        self.text = make_call(self.name, "org.a11y.atspi.Text", "GetText", "ii", _TEXT_RANGE)
        self.value = _property(self.name, "org.a11y.atspi.Value", "CurrentValue")

    @property
    def is_browser(self) -> bool:
        """Whether it makes trees of its pages only once somebody has asked for them."""
        return self.toolkit == "Chromium"

    @property
    def is_of_gtk_2(self) -> bool:
        """Whether GTK 2's implementation of accessibility speaks for it."""
        return self.toolkit == "GAIL"


Question = tuple[Application, Call, str, T]
"""A call to an object of an application, and what its answer is known by."""


class Inquiry:
    """Questions to applications; who leaves one unanswered is asked no more."""

    def __init__(self, bus: Bus, seconds: float, patience_s: float) -> None:
        """Begin.

        Args:
            bus: The accessibility bus.
            seconds: What all of it may take.
            patience_s: For how long no application at all may answer.
        """
        self._bus = bus
        self._deadline = time.monotonic() + seconds
        self._patience_s = patience_s
        self.silent: set[str] = set()
        """The names of applications that did not answer."""

    def pursue(self, questions: Iterable[Question[T]], answer: Callable[[T, bytes], Iterable[Question[T]]]) -> None:
        """Ask, and ask what the answers lead to.

        Args:
            questions: The first questions.
            answer: Takes the body of a reply, empty for an error, and returns further questions.

        Raises:
            BusUnavailable: The bus broke off.
        """

        def calls(asked: Iterable[Question[T]]) -> list[tuple[Call, str, tuple[str, T]]]:
            return [
                (call, path, (application.name, known_by))
                for application, call, path, known_by in asked
                if application.name not in self.silent
            ]

        def answered(known_by: tuple[str, T], reply: bytes) -> list[tuple[Call, str, tuple[str, T]]]:
            return calls(answer(known_by[1], reply))

        left = self._bus.converse(calls(questions), answered, self._deadline, self._patience_s)
        self.silent.update(name for name, _ in left)


def list_applications(bus: Bus, deadline: float) -> list[str]:
    """Return the names that applications have on the bus.

    Raises:
        BusUnavailable: The registry does not tell.
    """
    (raw,) = bus.ask_all([(make_call(_REGISTRY, _ACCESSIBLE, "GetChildren"), ROOT)], deadline)
    try:
        return list(dict.fromkeys(name for name, _ in parse_references(raw or b"", MAX_APPLICATIONS + 1)))
    except Malformed as exc:
        raise BusUnavailable(f"the registry of accessible applications does not answer: {exc}") from exc


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
        pid, toolkit, title = (reply or b"" for reply in replies[3 * n : 3 * n + 3])
        try:
            found.append(Application(name, parse_u32(pid), parse_variant_text(toolkit), parse_variant_text(title)))
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
