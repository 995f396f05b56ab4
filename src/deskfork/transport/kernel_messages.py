"""Jupyter messages as bytes: building and parsing, in both WebSocket framings. Pure functions, no I/O.

Source: Jupyter messaging specification 5.4; jupyter_server `services/kernels/connection/base.py` for the framings.
In `v1.kernel.websocket.jupyter.org` the server passes the kernel's own bytes on without decoding them.
"""

import json
import struct
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from deskfork.core.errors import TransportError

V1_PROTOCOL = "v1.kernel.websocket.jupyter.org"
_VERSION = "5.4"
_MAX_PARTS = 1024
_LONGEST_ESCAPE = 12
"""Bytes of a JSON string's longest character: a surrogate pair, twice six."""
_CHANNELS = frozenset({"shell", "control", "iopub", "stdin"})

JsonObject = dict[str, Any]
"""Foreign JSON: any of its values may be of any type."""


@dataclass(frozen=True)
class KernelMessage:
    """One message of the Jupyter protocol, as far as deskfork uses it."""

    channel: str
    """shell, control, iopub or stdin."""
    msg_type: str
    msg_id: str
    parent_id: str = ""
    """The msg_id of the request that caused it; empty when there was none."""
    session: str = ""
    content: JsonObject = field(default_factory=dict)
    is_cut: bool = False
    """It was too long to be received whole: of `content` there is at most the beginning of a stream's text."""


def execute_request(code: str, *, session: str) -> KernelMessage:
    """Build the request that runs `code` as a cell; the kernel may not ask for input."""
    content = {
        "code": code,
        "silent": False,
        "store_history": True,
        "user_expressions": {},
        "allow_stdin": False,
        # A cell that failed must not abort the next one, which the caller sends knowing of the failure.
        "stop_on_error": False,
    }
    return KernelMessage("shell", "execute_request", uuid.uuid4().hex, session=session, content=content)


def interrupt_request(*, session: str) -> KernelMessage:
    """Build the request, on the control channel, that interrupts the running cell."""
    return KernelMessage("control", "interrupt_request", uuid.uuid4().hex, session=session)


def encode_v1(message: KernelMessage) -> bytes:
    """Frame `message` for the binary subprotocol: offsets, channel, header, parent, metadata and content."""
    parts = [json.dumps(part).encode() for part in (_header(message), _parent(message), {}, message.content)]
    blocks = [message.channel.encode(), *parts]
    offsets = [8 * (len(blocks) + 2)]
    for block in blocks:
        offsets.append(offsets[-1] + len(block))
    return b"".join([struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets), *blocks])


def decode_v1(frame: bytes, *, is_cut: bool = False) -> KernelMessage:
    """Parse a frame of the binary subprotocol.

    Args:
        frame: As received.
        is_cut: `frame` is only the beginning of what was sent; of its content only a stream's text is then salvaged.

    Raises:
        TransportError: `frame` is not such a message.
    """
    if len(frame) < 8:
        raise TransportError(f"kernel frame of {len(frame)} bytes")
    (count,) = struct.unpack_from("<Q", frame)
    if not 6 <= count <= _MAX_PARTS or len(frame) < 8 * (count + 1):
        raise TransportError(f"kernel frame of {len(frame)} bytes claims {count} offsets")
    offsets = struct.unpack_from(f"<{count}Q", frame, 8)
    # Channel, header and parent header must be there even when the rest was cut off.
    present = offsets[:4] if is_cut else offsets
    if any(a > b for a, b in pairwise(offsets)) or present[-1] > len(frame):
        raise TransportError(f"kernel frame of {len(frame)} bytes with offsets that do not lie in it in order")
    channel, header, parent = (frame[a:b] for a, b in pairwise(offsets[:4]))
    content = _salvage(frame[offsets[4] :]) if is_cut else _load(frame[offsets[4] : offsets[5]])
    return _message(channel.decode("utf-8", "replace"), _load(header), _load(parent), content, is_cut)


def encode_json(message: KernelMessage) -> bytes:
    """Frame `message` for the default protocol: one JSON text."""
    return json.dumps(
        {
            "channel": message.channel,
            "header": _header(message),
            "parent_header": _parent(message),
            "metadata": {},
            "content": message.content,
            "buffers": [],
        }
    ).encode()


def decode_json(frame: bytes, *, is_text: bool = True) -> KernelMessage:
    """Parse a frame of the default protocol.

    Args:
        frame: As received.
        is_text: False for the binary form, which is the same JSON followed by raw buffers.

    Raises:
        TransportError: `frame` is not such a message.
    """
    if not is_text:
        if len(frame) < 8:
            raise TransportError(f"kernel frame of {len(frame)} bytes")
        count, start = struct.unpack_from("!II", frame)
        end = len(frame) if count < 2 or len(frame) < 12 else struct.unpack_from("!I", frame, 8)[0]
        if not 0 < count <= _MAX_PARTS or not 4 * (count + 1) <= start <= end <= len(frame):
            raise TransportError(f"kernel frame of {len(frame)} bytes with offsets that do not lie in it in order")
        frame = frame[start:end]
    whole = _load(frame)
    header, parent, content = (_object(whole.get(name)) for name in ("header", "parent_header", "content"))
    return _message(_text(whole.get("channel")), header, parent, content, False)


def _header(message: KernelMessage) -> JsonObject:
    return {
        "msg_id": message.msg_id,
        "msg_type": message.msg_type,
        "session": message.session,
        "username": "deskfork",
        "date": datetime.now(UTC).isoformat(),
        "version": _VERSION,
    }


def _parent(message: KernelMessage) -> JsonObject:
    return {"msg_id": message.parent_id} if message.parent_id else {}


def _message(channel: str, header: JsonObject, parent: JsonObject, content: JsonObject, is_cut: bool) -> KernelMessage:
    if channel not in _CHANNELS:
        raise TransportError(f"kernel message on unknown channel {channel[:40]!r}")
    return KernelMessage(
        channel,
        msg_type=_text(header.get("msg_type")),
        msg_id=_text(header.get("msg_id")),
        parent_id=_text(parent.get("msg_id", "")),
        session=_text(header.get("session", "")),
        content=content,
        is_cut=is_cut,
    )


def _load(raw: bytes) -> JsonObject:
    try:
        return _object(json.loads(raw.decode("utf-8", "surrogatepass")))
    except (ValueError, RecursionError) as exc:
        raise TransportError(f"kernel message is not JSON: {type(exc).__name__}: {str(exc)[:200]}") from exc


def _salvage(raw: bytes) -> JsonObject:
    """Return the beginning of a stream's content, `{"name": ..., "text": "...`, closed after the cut, or nothing."""
    for dropped in range(_LONGEST_ESCAPE):
        try:
            return _load(raw[: len(raw) - dropped] + b'"}')
        except TransportError:
            continue
    return {}


def _object(value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise TransportError(f"kernel message has a {type(value).__name__} where an object belongs")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TransportError(f"kernel message has a {type(value).__name__} where a text belongs")
    return value
