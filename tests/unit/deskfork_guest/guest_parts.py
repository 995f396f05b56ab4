"""A guest's kernel that notes what it is told, a gateway that confirms or not, and valid requests."""

import asyncio
import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from deskfork_guest.app import Observer
from deskfork_guest.identity import GuestKernel, Identity

OLD_TOKEN = "old-token-0123456789"
NEW_TOKEN = "new-token-0123456789"
ENTROPY = bytes(range(64))


class NotingKernel(GuestKernel):
    """Changes nothing on this machine."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.noted: list[tuple[str, object]] = []
        self._refuses = refuses

    def set_clock(self, time_ns: int) -> None:
        if self._refuses:
            raise PermissionError("clock_settime: not permitted")
        self.noted.append(("clock", time_ns))

    def reseed(self, entropy: bytes) -> None:
        self.noted.append(("entropy", entropy))

    def set_hostname(self, hostname: str) -> None:
        self.noted.append(("hostname", hostname))


@contextmanager
def gateway_answering(path: Path, answer: bytes) -> Iterator[list[str]]:
    """Take one token on the control socket `path`, answer it, and note it."""
    taken: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen(1)
        listener.settimeout(10.0)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                taken.append(connection.recv(4096).decode())
                connection.send(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield taken
        thread.join(timeout=10.0)


def make_identity(folder: Path, kernel: GuestKernel) -> Identity:
    """Make an identity whose files lie in `folder`."""
    (folder / "token").write_text(OLD_TOKEN)
    (folder / "machine-id").write_text("0" * 32 + "\n")
    return Identity(
        token_path=folder / "token",
        machine_id_path=folder / "machine-id",
        gateway_socket=folder / "control",
        kernel=kernel,
    )


def rekey_body(**changes: object) -> dict[str, object]:
    """Return a valid body of POST /rekey, with `changes` made to it."""
    return {
        "token": NEW_TOKEN,
        "time_ns": 1_800_000_000_000_000_000,
        "entropy": base64.b64encode(ENTROPY).decode(),
        "hostname": "desktop-7",
        "machine_id": "abcdef" * 5 + "01",
        **changes,
    }


class Client:
    """Calls the observer in this process."""

    def __init__(self, observer: Observer) -> None:
        self._transport = httpx.ASGITransport(app=observer)

    def call(
        self,
        method: str,
        path: str,
        *,
        authorization: str = f"Bearer {OLD_TOKEN}",
        json: object | None = None,
        content: bytes | None = None,
    ) -> httpx.Response:
        """Return the reply to one request."""

        async def request() -> httpx.Response:
            async with httpx.AsyncClient(transport=self._transport, base_url="http://guest") as client:
                headers = {"Authorization": authorization}
                return await client.request(method, path, headers=headers, json=json, content=content)

        return asyncio.run(request())
