"""Runs cells in a guest's Jupyter kernel through its kernel gateway."""

import json
import threading
import time
import urllib.parse
import uuid
from typing import NoReturn

from deskfork.core.errors import ConfigError, KernelLost, TransportError
from deskfork.core.types import CellResult
from deskfork.core.waiting import Deadline, wait_until
from deskfork.transport.cell_output import CellCollector
from deskfork.transport.endpoint import TcpEndpoint
from deskfork.transport.http import HttpClient
from deskfork.transport.kernel_messages import (
    V1_PROTOCOL,
    KernelMessage,
    decode_json,
    decode_v1,
    encode_json,
    encode_v1,
    execute_request,
)
from deskfork.transport.websocket_channel import ChannelClosed, DeadlinePassed, WebSocketChannel

MAX_OUTPUT_BYTES = 16 * 1024 * 1024
"""What is kept of a cell's output unless told otherwise."""
MAX_CODE_BYTES = 8 * 1024 * 1024
"""Tornado closes the connection on a message of 10 MiB."""
INTERRUPT_GRACE_S = 20.0
"""How long an interrupted cell may take to end, or to send more of its output, before its kernel counts as lost."""
BACKLOG_GRACE_S = 30.0
"""How long an interrupted cell's output may go on coming: a cell that prints in a loop leaves up to 1 GB on its way."""
_INTERRUPT_TIMEOUT_S = 10.0
_DRAIN_S = 0.25


class KernelClient:
    """A connection to one kernel; cells run one after the other."""

    def __init__(self, endpoint: TcpEndpoint, token: str, *, name: str) -> None:
        """Prepare a client; `connect` opens the connection.

        Args:
            endpoint: Where the kernel gateway answers.
            token: Its token.
            name: Whose kernel it is, for error messages.
        """
        self._endpoint = endpoint
        self._headers = {"Authorization": f"token {token}"}
        self._name = name
        self._session = ""
        self._http = HttpClient(endpoint)
        self._lock = threading.Lock()
        self._channel: WebSocketChannel | None = None
        self._kernel_id: str | None = None
        self._loss: str | None = None

    @property
    def kernel_id(self) -> str | None:
        """The kernel's id, once connected; it is the same in every fork of a template."""
        return self._kernel_id

    def connect(self, kernel_id: str | None, *, deadline: Deadline) -> None:
        """Open the connection.

        Args:
            kernel_id: The kernel to use; None finds the gateway's one kernel, which costs a request.
            deadline: When to give up.

        Raises:
            TransportError: The gateway did not answer as agreed, or does not have exactly one kernel.
        """
        with self._lock:
            self._kernel_id = kernel_id or self._find_kernel(deadline)
            self._drop()
            self._channel = self._open(deadline)
            self._loss = None

    def run_cell(self, code: str, *, timeout_s: float, max_output_bytes: int = MAX_OUTPUT_BYTES) -> CellResult:
        """Run `code` and wait until the kernel is idle and has replied.

        Args:
            code: Python; it may not ask for input.
            timeout_s: Limit for the whole cell, seconds; then it is interrupted and has INTERRUPT_GRACE_S to end
                (BACKLOG_GRACE_S while its output still comes in).
            max_output_bytes: What is kept of its output; the rest is dropped and `is_truncated` set.

        Raises:
            KernelLost: The kernel died, or ignored the interrupt; further cells are refused until `connect` is called
                again, as the kernel's state is gone or unknown.
            TransportError: The gateway did not answer as agreed.
            ConfigError: `code` is too long.
        """
        if len(code.encode("utf-8", "replace")) > MAX_CODE_BYTES:
            raise ConfigError(f"{self._name}: a cell of more than {MAX_CODE_BYTES} bytes")
        with self._lock:
            if self._loss is not None:
                raise KernelLost(f"{self._loss}; not connected again since")
            started = time.monotonic()
            deadline = Deadline.after(timeout_s)
            channel = self._usable_channel(deadline)
            request = execute_request(code, session=self._session)
            collector = CellCollector(request.msg_id, max_output_bytes)
            self._send(channel, request, deadline)
            timed_out = not self._collect(channel, collector, deadline)
            if timed_out:
                self._stop_cell(channel, collector, timeout_s)
            return collector.result(time.monotonic() - started, timed_out=timed_out)

    def interrupt(self) -> None:
        """Interrupt whatever the kernel runs; may be called from another thread than `run_cell`.

        Raises:
            TransportError: The gateway did not take it.
        """
        path = f"/api/kernels/{self._quoted_id()}/interrupt"
        # A connection of its own: nothing may queue in front of an interrupt.
        client = HttpClient(self._endpoint)
        try:
            reply = client.request("POST", path, self._headers, Deadline.after(_INTERRUPT_TIMEOUT_S))
        finally:
            client.close()
        if reply.status != 204:
            raise TransportError(f"{self._name}: interrupt refused: {reply.status} {reply.body[:200]!r}")

    def close(self) -> None:
        """Close the connection; the kernel lives on."""
        self._drop()
        self._http.close()

    def _find_kernel(self, deadline: Deadline) -> str:
        # The gateway listens a little before its prespawned kernel is in the list.
        found = wait_until(lambda: self._listed_kernel(deadline), deadline)
        if found is None:
            raise TransportError(f"{self._name}: {self._endpoint} has no kernel after {deadline.timeout_s:g} s")
        return found

    def _listed_kernel(self, deadline: Deadline) -> str | None:
        reply = self._http.request("GET", "/api/kernels", self._headers, deadline)
        try:
            kernels = json.loads(reply.body)
            found = [str(kernel["id"]) for kernel in kernels] if reply.status == 200 else None
        except (ValueError, TypeError, KeyError, RecursionError):
            found = None
        if found == []:
            return None
        if found is None or len(found) > 1:
            raise TransportError(
                f"{self._name}: expected the one kernel of {self._endpoint}, got {reply.status} {reply.body[:200]!r}"
            )
        return found[0]

    def _open(self, deadline: Deadline) -> WebSocketChannel:
        # A new session each time: it is the ZeroMQ identity of the gateway's sockets, and while the gateway has not yet
        # noticed that the last connection is gone, the kernel ignores a second peer of the same identity for good.
        self._session = uuid.uuid4().hex
        path = f"/api/kernels/{self._quoted_id()}/channels?session_id={self._session}"
        return WebSocketChannel.connect(self._endpoint, path, self._headers, deadline, subprotocol=V1_PROTOCOL)

    def _usable_channel(self, deadline: Deadline) -> WebSocketChannel:
        """Return the connection after reading what came between cells: pings, late output, news of the kernel's death.

        The gateway closes a connection whose client answered no ping for 90 s; as no request is under way then,
        opening a new one loses nothing.
        """
        drain_until = Deadline.after(min(_DRAIN_S, deadline.remaining_s))
        try:
            while self._channel is not None and self._channel.is_readable() and not drain_until.has_passed:
                self._receive(self._channel, drain_until)
        except DeadlinePassed:
            pass
        except ChannelClosed:
            self._channel = None
        if self._channel is None:
            self._channel = self._open(deadline)
        return self._channel

    def _collect(self, channel: WebSocketChannel, collector: CellCollector, deadline: Deadline) -> bool:
        try:
            while not collector.is_done:
                if (message := self._receive(channel, deadline)) is not None:
                    collector.feed(message)
        except DeadlinePassed:
            return False
        except ChannelClosed as exc:
            self._lose(f"connection lost during a cell: {exc}", exc)
        return True

    def _stop_cell(self, channel: WebSocketChannel, collector: CellCollector, timeout_s: float) -> None:
        what = f"cell not done in {timeout_s:g} s"
        try:
            self.interrupt()
        except TransportError as exc:
            self._lose(f"{what}, and not interrupted: {exc}", exc)
        until = Deadline.after(BACKLOG_GRACE_S)
        received = -1
        while channel.received_bytes > received and not until.has_passed:
            received = channel.received_bytes
            if self._collect(channel, collector, Deadline.after(min(INTERRUPT_GRACE_S, until.remaining_s))):
                return
        self._lose(f"{what}, nor {INTERRUPT_GRACE_S:g} s after its interrupt")

    def _receive(self, channel: WebSocketChannel, deadline: Deadline) -> KernelMessage | None:
        """Return the next message; None for one that nobody who keeps to the protocol would send.

        The gateway passes on what the guest's code itself writes to the kernel's sockets: such a message is no answer
        to ours, and must not end the cell as though our machinery had failed.
        """
        received = channel.receive(deadline)
        is_v1 = channel.subprotocol == V1_PROTOCOL and not received.is_text
        try:
            if is_v1:
                message = decode_v1(received.payload, is_cut=received.is_cut)
            else:
                message = decode_json(received.payload, is_text=received.is_text)
        except TransportError:
            return None
        # The gateway itself sends these, without a parent, when it finds the kernel's process gone.
        state = message.content.get("execution_state") if message.msg_type == "status" else None
        if state in ("restarting", "dead"):
            self._lose(f"the kernel died (gateway says: {state})")
        return message

    def _send(self, channel: WebSocketChannel, request: KernelMessage, deadline: Deadline) -> None:
        is_v1 = channel.subprotocol == V1_PROTOCOL
        channel.send(encode_v1(request) if is_v1 else encode_json(request), deadline, is_text=not is_v1)

    def _quoted_id(self) -> str:
        if self._kernel_id is None:
            raise TransportError(f"{self._name}: not connected to a kernel")
        return urllib.parse.quote(self._kernel_id, safe="")

    def _lose(self, why: str, cause: Exception | None = None) -> NoReturn:
        self._drop()
        self._loss = f"{self._name}: {why}"
        raise KernelLost(self._loss) from cause

    def _drop(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
