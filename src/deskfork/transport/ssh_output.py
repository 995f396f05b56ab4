"""Reads one stream of a remote command in the background, in bounded memory."""

import threading
from collections.abc import Callable

from deskfork.core.waiting import Deadline

_CHUNK_BYTES = 65536
_MAX_PREAMBLE_BYTES = 1 << 20


class ChannelDrain:
    """Reads until the stream ends or its channel is closed; keeps the first `max_bytes`.

    Args:
        read: Returns up to so many bytes, none at the end.
        max_bytes: What is kept; more is read and dropped, so that the program can go on.
        marker: If given, the stream holds it once, followed by a process id and a line feed; what comes up to there is
            not the program's and is dropped.
    """

    def __init__(self, read: Callable[[int], bytes], max_bytes: int, marker: str | None = None) -> None:
        self._read = read
        self._max_bytes = max_bytes
        self._marker = marker.encode() if marker else None
        self._kept = bytearray()
        self._received = 0
        self._pid: int | None = None
        self._has_pid = threading.Event()
        self._thread = threading.Thread(target=self._run, name="deskfork-ssh-drain", daemon=True)
        self._thread.start()

    def wait_pid(self, deadline: Deadline) -> int | None:
        """Return the process id behind the marker, or None if it has not come in time."""
        self._has_pid.wait(deadline.remaining_s)
        return self._pid

    def wait_quiet(self, quiet_s: float, deadline: Deadline) -> None:
        """Return once the stream has ended, or brought nothing for `quiet_s`, or the deadline has passed."""
        while self._thread.is_alive() and not deadline.has_passed:
            before = self._received
            self._thread.join(min(quiet_s, deadline.remaining_s))
            if self._received == before:
                return

    def text(self) -> str:
        """Return what was kept, undecodable bytes replaced."""
        return "" if self._marker else bytes(self._kept).decode("utf-8", "replace")

    def _run(self) -> None:
        try:
            while chunk := self._read(_CHUNK_BYTES):
                self._received += len(chunk)
                limit = self._max_bytes if self._marker is None else _MAX_PREAMBLE_BYTES
                self._kept += chunk[: max(0, limit - len(self._kept))]
                if self._marker is not None:
                    self._find_marker()
        except OSError:
            # The channel was closed under us: the stream has ended.
            return

    def _find_marker(self) -> None:
        assert self._marker is not None
        start = self._kept.find(self._marker)
        end = self._kept.find(b"\n", start)
        if start < 0 or end < 0:
            return
        digits = bytes(self._kept[start + len(self._marker) : end])
        if digits.isdigit() and 1 < int(digits) < 1 << 31:
            self._pid = int(digits)
            self._has_pid.set()
        del self._kept[: end + 1]
        self._marker = None
