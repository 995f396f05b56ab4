"""The owner's side of the fake provider's kernel process."""

import base64
import binascii
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Self

from deskfork.core.errors import KernelLost
from deskfork.core.types import FINAL_ANSWER_MIME, CellError, CellResult, RichOutput
from deskfork.core.waiting import Deadline
from deskfork.sandbox.fake import kernel as fake_kernel

START_TIMEOUT_S = 20.0
INTERRUPT_GRACE_S = 3.0
MAX_STREAM_BYTES = 4 * 1024 * 1024
Channels = tuple[socket.socket, int, int]
"""Control socket, and the descriptors of standard output and error."""
_RICHEST = (FINAL_ANSWER_MIME, "image/png", "image/jpeg", "text/html", "text/plain")


@dataclass(frozen=True)
class KernelHome:
    """Where a fake kernel lives: its sandbox's id and folder, and the guest user's home inside that."""

    sandbox_id: str
    base: Path
    home: Path


@dataclass
class _Heard:
    """What came from the kernel during one cell."""

    streams: dict[str, bytearray] = field(default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()})
    messages: list[dict[str, Any]] = field(default_factory=list)
    pending: bytes = b""
    is_truncated: bool = False

    def stream(self, name: str, chunk: bytes) -> None:
        room = MAX_STREAM_BYTES - len(self.streams[name])
        self.is_truncated |= len(chunk) > room
        self.streams[name] += chunk[:room]

    def control(self, chunk: bytes) -> None:
        *lines, self.pending = (self.pending + chunk).split(b"\n")
        self.messages += [json.loads(line) for line in lines]

    def last(self, kind: str) -> dict[str, Any] | None:
        return next((message for message in self.messages if message["type"] == kind), None)


class FakeKernel:
    """One kernel process: runs cells, forks itself, dies with its owner."""

    def __init__(self, pid: int, channels: Channels, process: subprocess.Popen[bytes] | None) -> None:
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)
        self._process = process
        self._wire, self._stdout, self._stderr = channels
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wire, selectors.EVENT_READ, "control")
        for name, descriptor in (("stdout", self._stdout), ("stderr", self._stderr)):
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ, name)
        self._selector.register(self._pidfd, selectors.EVENT_READ, "death")
        self._in_use = threading.RLock()
        self._wire.settimeout(START_TIMEOUT_S)
        self._is_closed = False

    @classmethod
    def start(cls, place: KernelHome, env: Mapping[str, str]) -> Self:
        """Start a kernel with nothing in it, working in the Desktop of `place`."""
        with ExitStack() as theirs:
            channels, far = _channels(theirs)
            control = far[0].fileno()
            arguments = [str(control), str(place.home), place.sandbox_id, str(place.base)]
            process = subprocess.Popen(
                [sys.executable, "-P", fake_kernel.__file__, *arguments],
                # The mark comes later, by the kernel itself: its forks live on in other sandboxes.
                env={name: value for name, value in env.items() if name != fake_kernel.MARK},
                cwd=place.home / "Desktop",
                stdin=subprocess.DEVNULL,
                stdout=far[1],
                stderr=far[2],
                pass_fds=[control],
                start_new_session=True,
            )
        kernel = cls(process.pid, channels, process)
        kernel._await("ready", Deadline.after(START_TIMEOUT_S))
        return kernel

    def fork(self, place: KernelHome) -> Self:
        """Start a kernel with a copy of everything in this one, living in `place`; threads of cells are not copied."""
        request = {"op": "fork", "id": place.sandbox_id, "home": str(place.home), "base": str(place.base)}
        with self._in_use, ExitStack() as theirs:
            channels, far = _channels(theirs)
            self._send(request, [far[0].fileno(), far[1], far[2]])
            reply = self._await("forked", Deadline.after(START_TIMEOUT_S)).last("forked")
        assert reply is not None
        kernel = type(self)(int(reply["pid"]), channels, None)
        kernel._await("ready", Deadline.after(START_TIMEOUT_S))
        return kernel

    def run(self, code: str, timeout_s: float) -> CellResult:
        """Run one cell; interrupt it when its time is up.

        Raises:
            KernelLost: The kernel died, was closed meanwhile, or ignored the interrupt.
        """
        with self._in_use:
            return self._run(code, timeout_s)

    def _run(self, code: str, timeout_s: float) -> CellResult:
        whole = Deadline.after(timeout_s)
        self._send({"op": "run", "code": code})
        heard, timed_out = _Heard(), False
        if not self._collect(heard, "done", whole):
            timed_out = True
            os.killpg(self.pid, signal.SIGINT)
            if not self._collect(heard, "done", Deadline.after(INTERRUPT_GRACE_S)):
                self.close()
                raise KernelLost(
                    f"kernel {self.pid}: no end of the cell after {timeout_s:.0f} s and an interrupt; killed it"
                )
        used_s = max(0.0, timeout_s - whole.remaining_s)
        return _result(heard, used_s, timed_out=timed_out)

    def close(self) -> None:
        """Kill the kernel and its process group; a cell at work ends. Calling it again does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            os.killpg(self.pid, signal.SIGKILL)
        # Only once it is dead: a living kernel takes a closed socket for its owner's death and removes the sandbox's
        # folder. And not below a thread that waits for a cell: it would wait on, or read what took the numbers over.
        with self._in_use:
            self._await_death()
            self._selector.close()
            self._wire.close()
            for descriptor in (self._pidfd, self._stdout, self._stderr):
                os.close(descriptor)

    def _await_death(self) -> None:
        if self._process is not None:
            self._process.wait(START_TIMEOUT_S)
        else:
            with selectors.DefaultSelector() as death:
                death.register(self._pidfd, selectors.EVENT_READ)
                death.select(START_TIMEOUT_S)

    def _send(self, message: dict[str, Any], descriptors: list[int] | None = None) -> None:
        if self._is_closed:
            raise KernelLost(f"kernel {self.pid}: it has ended")
        raw = json.dumps(message).encode() + b"\n"
        try:
            if descriptors:
                socket.send_fds(self._wire, [raw], descriptors)
            else:
                self._wire.sendall(raw)
        except OSError as exc:
            self.close()
            raise KernelLost(f"kernel {self.pid}: took no command: {exc}") from exc

    def _await(self, kind: str, deadline: Deadline) -> _Heard:
        heard = _Heard()
        if not self._collect(heard, kind, deadline):
            self.close()
            raise KernelLost(f"kernel {self.pid}: not {kind} after {deadline.timeout_s:.0f} s")
        return heard

    def _collect(self, heard: _Heard, kind: str, deadline: Deadline) -> bool:
        """Take in what the kernel sends until a message of `kind`, and whatever was printed before that message."""
        while heard.last(kind) is None:
            ready = self._selector.select(deadline.remaining_s)
            if not ready and deadline.has_passed:
                return False
            names = {str(key.data) for key, _events in ready}
            for name in sorted(names - {"death"}):
                self._take(heard, name)
            if "death" in names and heard.last(kind) is None:
                self._fail_dead()
        for name in ("stdout", "stderr"):
            while self._take(heard, name):
                pass
        return True

    def _take(self, heard: _Heard, name: str) -> bool:
        if name == "control":
            chunk = self._wire.recv(65536)
            if not chunk:
                self._fail_dead()
            heard.control(chunk)
            return True
        try:
            chunk = os.read(self._stdout if name == "stdout" else self._stderr, 65536)
        except BlockingIOError:
            return False
        if not chunk:
            with suppress(KeyError):  # every writer is gone, and a pipe at its end would wake the selector for ever
                self._selector.unregister(self._stdout if name == "stdout" else self._stderr)
        heard.stream(name, chunk)
        return bool(chunk)

    def _fail_dead(self) -> NoReturn:
        self.close()
        raise KernelLost(f"kernel {self.pid}: it died in a cell")


def _channels(theirs: ExitStack) -> tuple[Channels, Channels]:
    """Make both ends of a control socket and two output pipes; `theirs` closes the kernel's ends on this side."""
    near, far = socket.socketpair()
    (out_read, out_write), (err_read, err_write) = os.pipe(), os.pipe()
    theirs.callback(far.close)
    theirs.callback(os.close, out_write)
    theirs.callback(os.close, err_write)
    return (near, out_read, err_read), (far, out_write, err_write)


def _result(heard: _Heard, duration_s: float, *, timed_out: bool) -> CellResult:
    done = heard.last("done")
    assert done is not None
    outputs = tuple(_rich(message["data"]) for message in heard.messages if message["type"] == "display")
    return CellResult(
        stdout=heard.streams["stdout"].decode(errors="replace"),
        stderr=heard.streams["stderr"].decode(errors="replace"),
        outputs=tuple(output for output in outputs if output is not None),
        duration_s=duration_s,
        error=CellError(**done["error"]) if done["error"] else None,
        timed_out=timed_out,
        is_truncated=heard.is_truncated,
    )


def _rich(bundle: dict[str, Any]) -> RichOutput | None:
    mime = next((name for name in _RICHEST if name in bundle), None)
    if mime is None:
        return None
    raw = bundle[mime]
    content: str | bytes = raw if isinstance(raw, str) else json.dumps(raw)
    if mime.startswith("image/"):
        try:
            content = base64.b64decode(content)
        except binascii.Error:
            return None
    return RichOutput(mime, content, str(bundle.get("text/plain", "")))
