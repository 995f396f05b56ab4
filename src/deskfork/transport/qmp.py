"""Talks to QEMU over its own socket: no guest is asked, so none can slow this or fake it.

Source: QEMU QMP protocol specification and QAPI schema, as of QEMU 10.0.
"""

import contextlib
import json
import socket
import threading
from collections import deque
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypedDict

from deskfork.core.errors import TransportError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.transport.endpoint import DeadlineSocket

_MAX_LINE_BYTES = 16 * 1024 * 1024
_MAX_EVENTS = 1000
_COMMAND_TIMEOUT_S = 10.0
_MIGRATION_ENDED_BADLY = frozenset({"failed", "cancelled"})

JsonObject = dict[str, Any]
"""Foreign JSON: any of its values may be of any type."""


class QmpEvent(TypedDict):
    """What QEMU reports unasked."""

    event: str
    data: JsonObject


class QmpClient:
    """A connection to one QEMU. Threads may share it; each call holds the connection until it returns."""

    def __init__(self, socket_path: Path) -> None:
        self._path = socket_path
        self._lock = threading.RLock()
        self._socket: DeadlineSocket | None = None
        self._unread = bytearray()
        self._events: deque[QmpEvent] = deque(maxlen=_MAX_EVENTS)
        self._last_id = 0

    def connect(self, deadline: Deadline) -> None:
        """Connect as soon as QEMU has made its socket, and leave capabilities negotiation.

        Raises:
            TransportError: There was no QEMU that took the connection in time.
        """
        with self._lock:
            self.close()
            self._socket = wait_until(lambda: self._try_connect(deadline), deadline, interval_s=0.005)
            if self._socket is None:
                raise TransportError(f"qmp {self._path}: nothing listens there after {deadline.timeout_s:g} s")
            try:
                greeting = self._read("greeting", deadline)
                if "QMP" not in greeting:
                    self._fail("greeting", f"got {str(greeting)[:200]}")
                self.execute("qmp_capabilities", timeout_s=deadline.remaining_s)
            except TransportError:
                self.close()
                raise

    def execute(
        self, command: str, arguments: Mapping[str, object] | None = None, timeout_s: float = _COMMAND_TIMEOUT_S
    ) -> Any:
        """Run one QMP command.

        Args:
            command: Its QAPI name.
            arguments: Its QAPI arguments.
            timeout_s: How long to wait for its answer, seconds.

        Returns:
            What QEMU returned: foreign JSON, mostly an object.

        Raises:
            TransportError: QEMU refused (the message says why), is gone or did not answer in time.
        """
        with self._lock:
            deadline = Deadline.after(timeout_s)
            self._last_id += 1
            request = {"execute": command, "arguments": dict(arguments or {}), "id": self._last_id}
            self._write(command, request, deadline)
            while True:
                reply = self._read(command, deadline)
                # An answer that came after its command's deadline still arrives here, with the id of that command.
                if reply.get("id") != self._last_id:
                    self._keep_event(reply)
                elif "return" in reply:
                    return reply["return"]
                else:
                    error = reply.get("error")
                    said = error.get("desc") if isinstance(error, dict) else error
                    raise TransportError(f"qmp {self._path}: {command}: {said}")

    def wait_event(self, names: Collection[str], deadline: Deadline) -> QmpEvent:
        """Return the first event of these names, also one that came since they were last asked for.

        Events of other names that come meanwhile are kept; of all, the latest 1000.

        Raises:
            TransportError: None came in time, or QEMU is gone.
        """
        with self._lock:
            for event in self._events:
                if event["event"] in names:
                    self._events.remove(event)
                    return event
            what = f"event {'/'.join(sorted(names))}"
            while True:
                self._keep_event(self._read(what, deadline))
                if self._events and self._events[-1]["event"] in names:
                    return self._events.pop()

    def status(self) -> str:
        """Return the run state: running, paused, inmigrate, postmigrate, shutdown, ..."""
        return str(self.execute("query-status")["status"])

    def stop(self) -> None:
        """Stop the guest's processors."""
        self.execute("stop")

    def cont(self) -> None:
        """Let the guest's processors run."""
        self.execute("cont")

    def quit(self) -> None:
        """End QEMU. It may end before it has answered; that is no error."""
        with self._lock:
            # Whether the process is gone is for its owner to wait for.
            with contextlib.suppress(TransportError):
                self.execute("quit")
            self.close()

    def screendump(self, path: Path) -> None:
        """Have QEMU write the screen to `path` (as QEMU sees the file system), as a binary PPM."""
        self.execute("screendump", {"filename": str(path)})

    def human(self, command_line: str) -> str:
        """Run a command of the human monitor, which reports its errors as text, and return what it printed."""
        return str(self.execute("human-monitor-command", {"command-line": command_line}, timeout_s=60.0))

    def migrate(self, uri: str, capabilities: Collection[tuple[str, bool]] = ()) -> None:
        """Begin to write the guest's state to `uri`; `wait_migrated` waits for the end."""
        self._set_capabilities(capabilities)
        self.execute("migrate", {"uri": uri})

    def migrate_incoming(self, uri: str, capabilities: Collection[tuple[str, bool]] = ()) -> None:
        """Begin to read a state from `uri` into a QEMU started with `-incoming defer`; see `wait_migrated`."""
        self._set_capabilities(capabilities)
        self.execute("migrate-incoming", {"uri": uri})

    def migrate_status(self) -> str:
        """Return the state of the last migration, either way: setup, active, completed, failed, ... or none."""
        return str(self.execute("query-migrate").get("status", "none"))

    def wait_migrated(self, deadline: Deadline) -> None:
        """Wait until the migration that was begun, either way, is completed and `cont` is possible again.

        Raises:
            TransportError: It failed (the message says why), or did not end in time.
        """
        while True:
            state = self.execute("query-migrate", timeout_s=deadline.remaining_s)
            if state.get("status") == "completed":
                break
            if state.get("status") in _MIGRATION_ENDED_BADLY:
                reason = state.get("error-desc", "no reason given")
                raise TransportError(f"qmp {self._path}: migration {state['status']}: {reason}")
            # The event only says when to ask again, so one that is left over from before does no harm.
            self.wait_event({"MIGRATION"}, deadline)
        # QEMU 10.0 refuses `cont` for a moment after that ("Migration is not finalized yet"), and sends no event then.
        if not wait_until(lambda: self.status() != "finish-migrate", deadline, interval_s=0.001):
            raise TransportError(f"qmp {self._path}: migration not finalized in {deadline.timeout_s:g} s")

    def close(self) -> None:
        """Close the connection; QEMU lives on."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = None
            self._unread.clear()
            self._events.clear()

    def _set_capabilities(self, capabilities: Collection[tuple[str, bool]]) -> None:
        wanted = [("events", True), *capabilities]
        states = [{"capability": name, "state": is_on} for name, is_on in wanted]
        self.execute("migrate-set-capabilities", {"capabilities": states})

    def _try_connect(self, deadline: Deadline) -> DeadlineSocket | None:
        raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            raw.settimeout(max(deadline.remaining_s, 0.001))
            raw.connect(str(self._path))
        except (FileNotFoundError, ConnectionRefusedError, TimeoutError):
            raw.close()
            return None
        except OSError as exc:
            raw.close()
            raise TransportError(f"qmp {self._path}: connect: {exc}") from exc
        return DeadlineSocket(raw, deadline)

    def _keep_event(self, message: JsonObject) -> None:
        if isinstance(message.get("event"), str):
            data = message.get("data")
            self._events.append({"event": message["event"], "data": data if isinstance(data, dict) else {}})

    def _write(self, what: str, request: JsonObject, deadline: Deadline) -> None:
        if self._socket is None:
            raise TransportError(f"qmp {self._path}: {what}: not connected")
        self._socket.deadline = deadline
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
        except OSError as exc:
            self._fail(what, f"sending: {exc}")

    def _read(self, what: str, deadline: Deadline) -> JsonObject:
        if self._socket is None:
            raise TransportError(f"qmp {self._path}: {what}: not connected")
        self._socket.deadline = deadline
        try:
            line = self._read_line(self._socket)
            message = json.loads(line)
        except TimeoutError as exc:
            raise TransportError(f"qmp {self._path}: {what}: nothing in {deadline.timeout_s:g} s") from exc
        except (OSError, ValueError, RecursionError) as exc:
            self._fail(what, str(exc), exc)
        if not isinstance(message, dict):
            self._fail(what, f"got {line[:200]!r}")
        return message

    def _read_line(self, source: DeadlineSocket) -> bytes:
        while (end := self._unread.find(b"\n")) < 0:
            if len(self._unread) > _MAX_LINE_BYTES:
                raise ValueError(f"a line of more than {_MAX_LINE_BYTES} bytes")
            chunk = source.recv(65536)
            if not chunk:
                raise ConnectionResetError("QEMU closed the connection")
            self._unread += chunk
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    def _fail(self, what: str, why: str, cause: BaseException | None = None) -> NoReturn:
        self.close()
        raise TransportError(f"qmp {self._path}: {what}: {why}") from cause
