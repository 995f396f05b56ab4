"""Guards against a framing that differs from jupyter_server's, and guest bytes that raise anything unforeseen."""

import json
import struct
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jupyter_server.services.kernels.connection import base

from deskfork.core.errors import TransportError
from deskfork.transport.kernel_messages import (
    KernelMessage,
    decode_json,
    decode_v1,
    encode_json,
    encode_v1,
    execute_request,
    interrupt_request,
)

server: Any = base
"""jupyter_server's own framing, which is not typed."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
MESSAGES = st.builds(
    KernelMessage,
    channel=st.sampled_from(["shell", "control", "iopub", "stdin"]),
    msg_type=st.text(),
    msg_id=st.text(),
    parent_id=st.text(),
    session=st.text(),
    content=st.dictionaries(st.text(), JSON, max_size=5),
)


@given(MESSAGES)
def test_binary_frames_round_trip(message: KernelMessage) -> None:
    assert decode_v1(encode_v1(message)) == message


@given(MESSAGES)
def test_json_frames_round_trip(message: KernelMessage) -> None:
    assert decode_json(encode_json(message)) == message


@given(MESSAGES)
def test_jupyter_server_reads_our_binary_frames(message: KernelMessage) -> None:
    channel, (header, parent, _, content) = server.deserialize_msg_from_ws_v1(encode_v1(message))
    assert (channel, json.loads(content)) == (message.channel, message.content)
    assert json.loads(header)["msg_id"] == message.msg_id
    assert json.loads(parent).get("msg_id", "") == message.parent_id


def test_we_read_jupyter_servers_frames_with_buffers() -> None:
    header, parent = {"msg_id": "a", "msg_type": "comm_msg", "session": "s"}, {"msg_id": "b"}
    whole = {"header": header, "parent_header": parent, "metadata": {}, "content": {"x": 1}, "buffers": [b"raw", b""]}
    expected = KernelMessage("iopub", "comm_msg", "a", "b", "s", {"x": 1})
    parts = [json.dumps(part).encode() for part in (header, parent, {}, {"x": 1})]
    assert decode_v1(server.serialize_msg_to_ws_v1([*parts, b"raw", b""], "iopub")) == expected
    assert decode_json(server.serialize_binary_message({**whole, "channel": "iopub"}), is_text=False) == expected


@settings(max_examples=300)
@given(st.binary(max_size=400), st.booleans())
def test_arbitrary_bytes_are_a_message_or_a_transport_error(raw: bytes, flag: bool) -> None:
    with suppress(TransportError):
        assert isinstance(decode_v1(raw, is_cut=flag), KernelMessage)
    with suppress(TransportError):
        assert isinstance(decode_json(raw, is_text=flag), KernelMessage)


@settings(max_examples=300)
@given(MESSAGES, st.data())
def test_damaged_frames_are_a_message_or_a_transport_error(message: KernelMessage, data: st.DataObject) -> None:
    frame = bytearray(encode_v1(message))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, min(len(frame) - 1, 200)))] = data.draw(st.integers(0, 255))
    cut = bytes(frame[: data.draw(st.integers(0, len(frame)))])
    for is_cut in (False, True):
        try:
            assert isinstance(decode_v1(cut, is_cut=is_cut), KernelMessage)
        except TransportError:
            continue


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b"1" * 10_000,
        b"\xff\xfe",
        b"null",
        b"[]",
        b"",
    ],
    ids=["deep list", "deep object", "huge number", "not UTF-8", "null", "list", "empty"],
)
def test_hostile_content_is_a_transport_error(content: bytes) -> None:
    blocks = [b"iopub", b'{"msg_id":"a","msg_type":"stream"}', b"{}", b"{}", content]
    offsets = [8 * 7]
    for block in blocks:
        offsets.append(offsets[-1] + len(block))
    frame = struct.pack("<7Q", 6, *offsets) + b"".join(blocks)
    with pytest.raises(TransportError):
        decode_v1(frame)


def test_a_cut_frame_keeps_its_head() -> None:
    message = KernelMessage("shell", "execute_reply", "a", "b", "s", {"traceback": ["x" * 5000]})
    cut = decode_v1(encode_v1(message)[:1000], is_cut=True)
    assert cut == KernelMessage("shell", "execute_reply", "a", "b", "s", {}, is_cut=True)


@given(st.text(alphabet='aé😀\\"\n', min_size=200, max_size=300), st.integers(0, 60))
def test_a_cut_stream_keeps_the_beginning_of_its_text(text: str, dropped: int) -> None:
    message = KernelMessage("iopub", "stream", "a", "b", "s", {"name": "stdout", "text": text})
    cut = decode_v1(encode_v1(message)[: -2 - dropped], is_cut=True)
    assert cut.content["name"] == "stdout"
    salvaged = cut.content["text"].encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    assert text.startswith(salvaged)
    assert len(salvaged) >= 200 - 60 - 12


def test_a_cell_may_not_ask_for_input_and_does_not_abort_its_successor() -> None:
    request = execute_request("1", session="s")
    assert (request.channel, request.msg_type) == ("shell", "execute_request")
    assert request.content["allow_stdin"] is False
    assert request.content["stop_on_error"] is False
    assert interrupt_request(session="s").channel == "control"


def test_every_request_has_an_id_of_its_own() -> None:
    assert len({execute_request("1", session="s").msg_id for _ in range(100)}) == 100
