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
_F64 = struct.Struct("<d")
_BITS = struct.Struct("<III")
_RECTANGLE = struct.Struct("<iiii")
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


def message_size(raw: bytes, at: int) -> tuple[int, int]:
    """Return how many bytes the message that begins at `at` has, and how many of them come before its body.

    Raises:
        Malformed: It is no message.
    """
    head = _HEAD if raw[at] == _LITTLE else _BIG_HEAD
    order, _, _, version, body_bytes, _, fields_bytes = head.unpack_from(raw, at)
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


def parse_u32(raw: bytes) -> int:
    """Read a body that is one unsigned integer."""
    if len(raw) != _U32.size:
        raise Malformed(f"an integer of {len(raw)} bytes")
    return int(_U32.unpack(raw)[0])


def parse_bits(raw: bytes) -> int:
    """Read a body that is an array of two unsigned integers, as one set of bits."""
    if len(raw) != _BITS.size:
        raise Malformed(f"a set of {len(raw)} bytes")
    _, low, high = _BITS.unpack(raw)
    return int(low | high << 32)


def parse_rectangle(raw: bytes) -> tuple[int, int, int, int]:
    """Read a body that is four integers."""
    if len(raw) != _RECTANGLE.size:
        raise Malformed(f"a rectangle of {len(raw)} bytes")
    x, y, width, height = _RECTANGLE.unpack(raw)
    return x, y, width, height


def parse_number(raw: bytes) -> float:
    """Read a body that is a variant with a double in it."""
    if raw[:3] != b"\x01d\0" or len(raw) != 8 + _F64.size:
        raise Malformed("no variant with a double in it")
    return float(_F64.unpack_from(raw, 8)[0])


def parse_text(raw: bytes, at: int = 0) -> str:
    """Read a body that is one string; what is not UTF-8 in it is replaced."""
    length = int.from_bytes(raw[at : at + 4], "little")
    if at + 4 + length >= len(raw):
        raise Malformed("a string goes beyond the body's end")
    return raw[at + 4 : at + 4 + length].decode("utf-8", "replace")


def parse_variant_text(raw: bytes) -> str:
    """Read a body that is a variant with a string in it."""
    if raw[:3] != b"\x01s\0":
        raise Malformed("no variant with a string in it")
    return parse_text(raw, 4)


def parse_references(raw: bytes, limit: int) -> list[tuple[str, str]]:
    """Read a body that is an array of AT-SPI's references, names on the bus and paths; no more than `limit` of them."""
    # An array's length, and padding up to its first structure.
    end = 8 + int.from_bytes(raw[:4], "little")
    if len(raw) < 8 or end > len(raw):
        raise Malformed("an array goes beyond the body's end")
    found: list[tuple[str, str]] = []
    at = 8
    while at < end and len(found) < limit:
        at += -at % 8
        name = parse_text(raw, at)
        at += 4 + int.from_bytes(raw[at : at + 4], "little") + 1
        at += -at % 4
        path = parse_text(raw, at)
        at += 4 + int.from_bytes(raw[at : at + 4], "little") + 1
        found.append((name, path))
    return found
