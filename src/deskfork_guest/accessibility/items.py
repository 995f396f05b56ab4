"""What an application says of all its objects at once, in reply to AT-SPI's Cache.GetItems."""

import struct
from dataclasses import dataclass

from deskfork_guest.accessibility.wire import Body, Malformed

MAX_ITEMS = 20_000
_TEXT, _ACTION, _VALUE = (f"org.a11y.atspi.{name}\0".encode() for name in ("Text", "Action", "Value"))
_WORDS = struct.Struct("<II")


@dataclass(slots=True)
class Item:
    """One object of an application."""

    path: str
    parent: str
    """Its parent's path."""
    index: int
    """Its place among its siblings, -1 if the application does not know."""
    has_text: bool
    has_action: bool
    has_value: bool
    name: str
    role: int
    states: int
    """A set: one bit for each of AT-SPI's states."""


def parse_items(raw: bytes) -> list[Item]:
    """Read the body of a reply: `a((so)(so)(so)iiassusau)`.

    Objects beyond MAX_ITEMS are left out.

    Raises:
        Malformed: The body is no such array.
    """
    body = Body(raw)
    end = body.u32()
    body.align(8)
    end += body.at
    if end > len(raw):
        raise Malformed("the array goes beyond the body's end")
    items: list[Item] = []
    # An application says the same few sets of interfaces again and again.
    known: dict[bytes, tuple[bool, bool, bool]] = {}
    while body.at < end and len(items) < MAX_ITEMS:
        body.align(8)
        body.skip_text()
        path = body.text()
        body.align(8)
        body.skip_text()
        body.skip_text()
        body.align(8)
        body.skip_text()
        parent = body.text()
        index = body.u32()
        body.u32()
        interfaces = body.block()
        flags = known.get(interfaces)
        if flags is None:
            flags = known[interfaces] = (_TEXT in interfaces, _ACTION in interfaces, _VALUE in interfaces)
        name = body.text()
        role = body.u32()
        body.skip_text()
        states = body.block()
        if len(states) != _WORDS.size:
            raise Malformed(f"a set of states of {len(states)} bytes")
        low, high = _WORDS.unpack(states)
        has_text, has_action, has_value = flags
        place = index if index < 1 << 31 else -1
        items.append(Item(path, parent, place, has_text, has_action, has_value, name, role, low | high << 32))
    return items
