"""Runs the observer in the guest, as root."""

import asyncio
from pathlib import Path
from types import FrameType

import uvicorn

from deskfork_guest.accessibility.look import AccessibilityReader
from deskfork_guest.app import Observer
from deskfork_guest.desktop import DesktopReader
from deskfork_guest.identity import GuestKernel, Identity

PORT = 60000
KEEP_ALIVE_S = 3600


class QuietServer(uvicorn.Server):
    """uvicorn without its ten wake-ups a second: an idle guest must cost its host nothing."""

    async def main_loop(self) -> None:
        """Wait until the process is told to stop."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        await self._stop.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop serving; called as a signal handler, after the loop has started."""
        super().handle_exit(sig, frame)
        self._loop.call_soon_threadsafe(self._stop.set)


def main() -> None:
    """Serve on the contract's port."""
    identity = Identity(
        token_path=Path("/run/deskfork/token"),
        machine_id_path=Path("/etc/machine-id"),
        gateway_socket=Path("/run/deskfork-gateway/control"),
        kernel=GuestKernel(),
    )
    config = uvicorn.Config(
        Observer(identity, DesktopReader(":0"), AccessibilityReader()),
        # All addresses: the guest's own network ends at the hypervisor, which decides what is forwarded.
        host="0.0.0.0",
        port=PORT,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
    )
    QuietServer(config).run()


if __name__ == "__main__":
    main()
