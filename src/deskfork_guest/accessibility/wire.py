"""As much of D-Bus's wire format as reading AT-SPI takes: method calls out, replies in.

Not a library's, because of where it runs: under emulation a general library's objects for a message cost a millisecond
each, and one look at a desktop takes a thousand messages. What comes in is a hostile program's: everything that does
not parse raises Malformed.

Source: D-Bus Specification 0.41, sections "Type System" and "Message Protocol".
"""

import struct
from collections.abc import Callable

CALL, REPLY, FAILURE = 1, 2, 3
MESSAGE_HEAD = 16
_PATH, _INTERFACE, _MEMBER, _REPLY_SERIAL, _DESTINATION, _SIGNATURE = 1, 2, 3, 5, 6, 8
_U32 = struct.Struct("<I")
_LITTLE, _BIG = 0x6C, 0x42
_HEAD = struct.Struct("<BBBBIII")
_BIG_HEAD = struct.Struct(">BBBBIII")
_FIELD = struct.Struct("<BBcxI")


class Malformed(Exception):
    """Bytes that are no D-Bus message, or not the one that was agreed."""


def _field(code: int, kind: bytes, text: str) -> bytes:
    raw = text.encode()
    packed = _FIELD.pack(code, 1, kind, len(raw)) + raw + b"\0"
    return packed + bytes(-len(packed) % 8)


def make_call(
    destination: str, interface: str, member: str, signature: str = "", body: bytes = b""
) -> Callable[[int, str], bytes]:
    """Prepare a method call that differs in nothing but its object.

    Args:
        destination: Name on the bus.
        interface: The method's interface.
        member: The method.
        signature: Of the arguments; empty for none.
        body: The arguments, marshalled.

    Returns:
        What makes the message from a serial number and an object's path.
    """
    fixed = _field(_DESTINATION, b"s", destination) + _field(_INTERFACE, b"s", interface)
    fixed += _field(_MEMBER, b"s", member)
    if signature:
        raw = signature.encode()
        fixed += bytes((_SIGNATURE, 1)) + b"g\0" + bytes((len(raw),)) + raw + b"\0"
        fixed += bytes(-len(fixed) % 8)

    def message(serial: int, path: str) -> bytes:
        raw = path.encode()
        fields = fixed + _FIELD.pack(_PATH, 1, b"o", len(raw)) + raw + b"\0"
        head = _HEAD.pack(_LITTLE, CALL, 0, 1, len(body), serial, len(fields))
        return head + fields + bytes(-len(fields) % 8) + body

    return message


def message_size(head: bytes | bytearray | memoryview) -> tuple[int, int]:
    """Return how many bytes the message whose first 16 are `head` has, and how many of them come before its body.

    Raises:
        Malformed: It is no message.
    """
    order, _, _, version, body_bytes, _, fields_bytes = (_HEAD if head[0] == _LITTLE else _BIG_HEAD).unpack_from(head)
    if order not in (_LITTLE, _BIG) or version != 1:
        raise Malformed(f"byte order {order}, version {version}")
    start = MESSAGE_HEAD + fields_bytes + -fields_bytes % 8
    return start + body_bytes, start


def reply_serial(message: bytes) -> int:
    """Return the serial number of the call that `message` answers; 0 for one that answers none, or in big-endian.

    Raises:
        Malformed: Its header does not parse.
    """
    if message[0] != _LITTLE or message[1] not in (REPLY, FAILURE):
        return 0
    end = MESSAGE_HEAD + int.from_bytes(message[12:16], "little")
    at = MESSAGE_HEAD
    try:
        while at < end:
            code, kind = message[at], message[at + 2]
            if code == _REPLY_SERIAL and kind == 0x75:
                return int(_U32.unpack_from(message, at + 4)[0])
            # Strings, paths and signatures are all there is besides.
            if kind == 0x67:
                at += 4 + message[at + 4] + 2
            elif kind == 0x75:
                at += 8
            else:
                at += 8 + _U32.unpack_from(message, at + 4)[0] + 1
            at += -at % 8
    except (IndexError, struct.error) as exc:
        raise Malformed(f"header: {exc}") from exc
    return 0


class Body:
    """Reads the values in a message's body one after the other; every method raises Malformed at the body's end."""

    def __init__(self, raw: bytes) -> None:
        """Start at the beginning of `raw`."""
        self.raw = raw
        self.at = 0

    def u32(self) -> int:
        """Read an unsigned integer, or a boolean."""
        at = self.at + -self.at % 4
        try:
            (value,) = _U32.unpack_from(self.raw, at)
        except struct.error as exc:
            raise Malformed("the body ends early") from exc
        self.at = at + 4
        return int(value)

    def text(self) -> str:
        """Read a string or an object's path; what is not UTF-8 in it is replaced."""
        length = self.u32()
        end = self.at + length
        if end >= len(self.raw):
            raise Malformed("a string goes beyond the body's end")
        value = self.raw[self.at : end].decode("utf-8", "replace")
        self.at = end + 1
        return value

    def skip_text(self) -> None:
        """Go past a string or an object's path."""
        length = self.u32()
        self.at += length + 1

    def block(self) -> bytes:
        """Read an array of what needs no more than four bytes' alignment, as it is."""
        length = self.u32()
        end = self.at + length
        if end > len(self.raw):
            raise Malformed("an array goes beyond the body's end")
        value = self.raw[self.at : end]
        self.at = end
        return value

    def align(self, boundary: int) -> None:
        """Go to the next multiple of `boundary` bytes."""
        self.at += -self.at % boundary

    def variant_text(self) -> str:
        """Read a variant that holds a string."""
        if self.raw[self.at : self.at + 3] != b"\x01s\0":
            raise Malformed("a variant that is no string")
        self.at += 3
        return self.text()

    def references(self) -> list[tuple[str, str]]:
        """Read an array of AT-SPI's references: pairs of a name on the bus and a path."""
        end = self.u32()
        self.align(8)
        end += self.at
        found = []
        while self.at < end:
            self.align(8)
            found.append((self.text(), self.text()))
        return found
