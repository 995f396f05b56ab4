"""Screens of a trial: one PNG for each distinct one, encoded beside the agent so that no step waits for it."""

import hashlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path

from PIL import Image

from deskfork.core.errors import InfraError

_BACKLOG = 8
"""Screens that may wait for their encoding; each holds its pixels in memory."""
_ENCODE_TIMEOUT_S = 60.0


class ScreenStore:
    """Writes screens into one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: set[str] = set()
        self._pending: deque[Future[None]] = deque()
        self._encoder = ThreadPoolExecutor(max_workers=1, thread_name_prefix="screens")

    def save(self, image: Image.Image, step: int) -> str:
        """Keep the screen as it was after `step`, unless the same pixels are kept already.

        Args:
            image: A copy of it is taken.
            step: Not looked at: the name is made from the pixels.

        Returns:
            Its path relative to the trial's folder, as in StepRecord.screen.

        Raises:
            InfraError: An earlier screen could not be written.
        """
        pixels = image.convert("RGB")
        raw = pixels.tobytes()
        digest = hashlib.sha256(raw + str(pixels.size).encode()).hexdigest()[:24]
        name = f"{digest}.png"
        if digest not in self._known:
            self._known.add(digest)
            self._pending.append(self._encoder.submit(self._write, name, pixels.size, raw))
            self._settle(_BACKLOG)
        return f"{self._folder.name}/{name}"

    def close(self) -> None:
        """Wait until every screen is on disk.

        Raises:
            InfraError: One could not be written.
        """
        try:
            self._settle(0)
        finally:
            self._encoder.shutdown(wait=False, cancel_futures=True)

    def _settle(self, backlog: int) -> None:
        while self._pending and (self._pending[0].done() or len(self._pending) > backlog):
            try:
                self._pending.popleft().result(timeout=_ENCODE_TIMEOUT_S)
            except FutureTimeout as error:
                raise InfraError(f"{self._folder}: a screen was not written in {_ENCODE_TIMEOUT_S:.0f} s") from error
            except OSError as error:
                raise InfraError(f"{self._folder}: a screen could not be written: {error.strerror or error}") from error

    def _write(self, name: str, size: tuple[int, int], raw: bytes) -> None:
        target = self._folder / name
        partial = target.with_suffix(".partial")
        try:
            Image.frombytes("RGB", size, raw).save(partial, format="PNG", compress_level=1)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
