"""Guards against cells that end too early, too late or never, on a real kernel behind a real gateway."""

import base64
import hashlib
import json
import socket
import struct
import time

import pytest
from transport_services import Gateway, StartPeer

from deskfork.core.errors import ConfigError, KernelLost, TransportError
from deskfork.core.types import FINAL_ANSWER_MIME
from deskfork.core.waiting import Deadline
from deskfork.transport.kernel import BACKLOG_GRACE_S, INTERRUPT_GRACE_S, KernelClient
from deskfork.transport.kernel_messages import KernelMessage, encode_json


def test_state_persists_and_the_last_value_is_shown(kernel: KernelClient) -> None:
    assert kernel.run_cell("x = 20", timeout_s=20).outputs == ()
    result = kernel.run_cell("x + 1", timeout_s=20)
    assert [(output.mime, output.content) for output in result.outputs] == [("text/plain", "21")]
    assert result.error is None


def test_the_round_trip_is_short(kernel: KernelClient) -> None:
    kernel.run_cell("1", timeout_s=20)
    spent = time.process_time()
    durations = sorted(kernel.run_cell("1", timeout_s=20).duration_s for _ in range(50))
    spent = time.process_time() - spent
    assert durations[25] < 0.04, "delayed ACKs would make it 48 ms"
    assert spent / 50 < 0.002, "our own share of a cell"


def test_streams_displays_and_final_answers_come_through(kernel: KernelClient) -> None:
    code = f"""
import sys
from IPython.display import display, HTML
print("out"); print("err", file=sys.stderr)
display(HTML("<b>bold</b>"))
display({{"image/png": "iVBORw0KGgo=", "text/plain": "a picture"}}, raw=True)
display({{{FINAL_ANSWER_MIME!r}: {{"answer": 42}}}}, raw=True)
handle = display("old", display_id=True); handle.update("new")
"""
    result = kernel.run_cell(code, timeout_s=20)
    assert (result.stdout, result.stderr, result.error) == ("out\n", "err\n", None)
    assert [(output.mime, output.content) for output in result.outputs] == [
        ("text/html", "<b>bold</b>"),
        ("image/png", b"\x89PNG\r\n\x1a\n"),
        (FINAL_ANSWER_MIME, '{"answer": 42}'),
        ("text/plain", "'new'"),
    ]
    assert result.outputs[1].text == "a picture"


def test_a_failing_cell_is_a_result_with_what_it_printed(kernel: KernelClient) -> None:
    result = kernel.run_cell("print('before'); 1 / 0", timeout_s=20)
    assert result.stdout == "before\n"
    assert result.error is not None
    assert result.error.name == "ZeroDivisionError"
    assert "1 / 0" in result.error.traceback
    assert "\x1b" not in result.error.traceback
    assert kernel.run_cell("'still here'", timeout_s=20).error is None


def test_a_syntax_error_is_a_result(kernel: KernelClient) -> None:
    result = kernel.run_cell("def", timeout_s=20)
    assert result.error is not None
    assert result.error.name == "SyntaxError"


def test_asking_for_input_is_refused_at_once(kernel: KernelClient) -> None:
    result = kernel.run_cell("input('?')", timeout_s=20)
    assert result.error is not None
    assert result.error.name == "StdinNotImplementedError"


def test_an_overrunning_cell_is_interrupted_and_the_kernel_goes_on(kernel: KernelClient) -> None:
    result = kernel.run_cell("kept = 1\nprint('started', flush=True)\nwhile True: pass", timeout_s=1)
    assert result.timed_out
    assert result.stdout == "started\n"
    assert 1 <= result.duration_s < 4
    assert kernel.run_cell("kept", timeout_s=20).outputs[0].content == "1"


def test_a_flood_of_output_ends_at_the_deadline_in_bounded_memory(kernel: KernelClient) -> None:
    result = kernel.run_cell("while True: print('x' * 10_000)", timeout_s=0.7, max_output_bytes=100_000)
    assert result.timed_out
    assert result.is_truncated
    assert len(result.stdout) == 100_000
    assert result.duration_s < 0.7 + BACKLOG_GRACE_S + 1
    assert kernel.run_cell("1", timeout_s=20).outputs[0].content == "1"


def test_messages_that_the_cell_forges_do_not_end_it(kernel: KernelClient) -> None:
    forge = """
session, socket = get_ipython().kernel.session, get_ipython().kernel.iopub_socket
session.send(socket, "status", {"execution_state": "idle"}, parent={"msg_id": "x"}, ident=b"status")
socket.send_multipart([b"x", b"<IDS|MSG>", b"sig", b"not json", b"{", b"[]", b"\\xff"])
session.send(socket, "status", {"execution_state": "idle"}, parent=None, ident=b"status")
import time; time.sleep(0.3); print("after")
"""
    assert kernel.run_cell(forge, timeout_s=20).stdout == "after\n"


def test_a_message_too_large_to_receive_is_dropped_and_the_cell_still_ends(kernel: KernelClient) -> None:
    result = kernel.run_cell("print('small')\ndisplay({'text/plain': 'x' * 40_000_000}, raw=True)", timeout_s=60)
    assert result.is_truncated
    assert result.stdout == "small\n"
    assert result.outputs == ()
    result = kernel.run_cell("raise ValueError('x' * 40_000_000)", timeout_s=60)
    assert result.error is not None
    assert not result.timed_out


def test_a_cell_that_no_gateway_would_take_is_refused(kernel: KernelClient) -> None:
    with pytest.raises(ConfigError):
        kernel.run_cell("#" * (8 * 1024 * 1024 + 1), timeout_s=20)


def test_a_large_cell_and_unicode_pass(kernel: KernelClient) -> None:
    code = f"text = '{'ü€😀' * 100_000}'\nprint(len(text), text[:3])"
    assert kernel.run_cell(code, timeout_s=20).stdout == "300000 ü€😀\n"


def test_a_wrong_token_is_a_transport_error(gateway: Gateway) -> None:
    client = KernelClient(gateway.endpoint, "wrong", name="test")
    with pytest.raises(TransportError, match="401"):
        client.connect(None, deadline=Deadline.after(5))
    with pytest.raises(TransportError, match="refused"):
        client.connect("some-kernel", deadline=Deadline.after(5))
    client.close()


def test_an_unknown_kernel_is_a_transport_error(gateway: Gateway) -> None:
    client = KernelClient(gateway.endpoint, gateway.token, name="test")
    with pytest.raises(TransportError):
        client.connect("00000000-0000-0000-0000-000000000000", deadline=Deadline.after(5))
    client.close()


def test_an_unconnected_client_says_so(gateway: Gateway) -> None:
    client = KernelClient(gateway.endpoint, gateway.token, name="test")
    with pytest.raises(TransportError, match="not connected"):
        client.run_cell("1", timeout_s=1)
    with pytest.raises(TransportError, match="not connected"):
        client.interrupt()
    client.close()


def test_a_connection_lost_between_cells_is_opened_anew(kernel: KernelClient) -> None:
    kernel.run_cell("kept = 'state'", timeout_s=20)
    assert kernel._channel is not None
    kernel._channel._socket._raw.shutdown(2)
    assert kernel.run_cell("kept", timeout_s=20).outputs[0].content == "'state'"


def test_a_kernel_that_ignores_its_interrupt_is_lost_and_takes_no_more_cells(kernel: KernelClient) -> None:
    stubborn = f"""
import time
until = time.monotonic() + {INTERRUPT_GRACE_S + 5}
while time.monotonic() < until:
    try:
        time.sleep(0.1)
    except KeyboardInterrupt:
        pass
"""
    with pytest.raises(KernelLost, match="interrupt"):
        kernel.run_cell(stubborn, timeout_s=0.5)
    with pytest.raises(KernelLost, match="not connected again"):
        kernel.run_cell("1", timeout_s=1)


def test_a_kernel_that_dies_is_lost_soon_and_its_successor_is_not_mistaken_for_it(kernel: KernelClient) -> None:
    started = time.monotonic()
    with pytest.raises(KernelLost, match="died"):
        kernel.run_cell("import os; os._exit(1)", timeout_s=30)
    assert time.monotonic() - started < 20
    with pytest.raises(KernelLost, match="not connected again"):
        kernel.run_cell("1", timeout_s=1)


def test_a_gateway_without_the_binary_subprotocol_is_served_too(peer: StartPeer) -> None:
    def receive_request(connection: socket.socket) -> str:
        head = connection.recv(8, socket.MSG_WAITALL)
        (size,) = struct.unpack("!H", head[2:4])
        masked = connection.recv(size, socket.MSG_WAITALL)
        assert head[0] == 0x81, "a whole text message"
        request = json.loads(bytes(byte ^ head[4 + index % 4] for index, byte in enumerate(masked)))
        assert (request["channel"], request["content"]["code"]) == ("shell", "1 + 1")
        return str(request["header"]["msg_id"])

    def talk(connection: socket.socket) -> None:
        asked = connection.recv(4096)
        key = next(line.split(b": ")[1] for line in asked.split(b"\r\n") if line.startswith(b"Sec-WebSocket-Key"))
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
        connection.sendall(f"HTTP/1.1 101 x\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
        parent = receive_request(connection)
        for channel, msg_type, content in (
            ("iopub", "execute_result", {"data": {"text/plain": "2"}}),
            ("shell", "execute_reply", {"status": "ok"}),
            ("iopub", "status", {"execution_state": "idle"}),
        ):
            message = encode_json(KernelMessage(channel, msg_type, "x", parent, "s", content))
            connection.sendall(struct.pack("!BBH", 0x81, 126, len(message)) + message)
        connection.recv(1)

    client = KernelClient(peer(talk).endpoint, "t", name="test")
    client.connect("some-id", deadline=Deadline.after(5))
    assert client.run_cell("1 + 1", timeout_s=5).outputs[0].content == "2"
    client.close()
