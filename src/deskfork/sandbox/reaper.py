"""A process that outlives its owner by as long as it takes to clean up after it.

Run as `python -m deskfork.sandbox.reaper CACHE_DIR` with a pipe as standard input. The owner writes a byte before it
closes the pipe in good order; an end of file without it means that the owner died, by SIGKILL for one, and left its
machines behind. It imports nothing heavy before that: it starts while a fork does.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, cast


class Reaper:
    """The owner's end."""

    def __init__(self, cache_dir: Path) -> None:
        """Start the process."""
        command = [sys.executable, "-m", "deskfork.sandbox.reaper", str(cache_dir)]
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """Tell it that everything has been cleaned up, and wait until it is gone; calling it again does nothing."""
        pipe = cast("IO[bytes]", self._child.stdin)
        if not pipe.closed:
            try:
                pipe.write(b".")
                pipe.close()
            except BrokenPipeError:
                # It was killed; `sandbox prune` does its work then.
                pipe.close()
            self._child.wait()


def main() -> None:
    """Wait for the owner's end, then clean up if it was a violent one."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if os.read(0, 1):
        return
    from deskfork.sandbox.prune import prune

    prune(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
