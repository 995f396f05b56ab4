"""What makes one fork differ from the next: clock, randomness, names and the token.

This runs right after a fork, under emulation with a cold translation cache: no subprocess, no import at call time.
"""

import contextlib
import fcntl
import os
import socket
import struct
import time
from pathlib import Path

from deskfork_guest.schema import RekeyRequest

RNDADDENTROPY = 0x40085203
RNDRESEEDCRNG = 0x5207
GATEWAY_TIMEOUT_S = 10.0


class RekeyFailed(Exception):
    """The guest could not take its new identity; the old token still holds."""


class GuestKernel:
    """The kernel's side of an identity: wall clock, random number generator, host name. Needs root."""

    def set_clock(self, time_ns: int) -> None:
        """Set the wall clock to `time_ns` nanoseconds since the epoch."""
        time.clock_settime_ns(time.CLOCK_REALTIME, time_ns)

    def reseed(self, entropy: bytes) -> None:
        """Credit `entropy` to the random number generator and make it reseed at once."""
        fd = os.open("/dev/urandom", os.O_WRONLY)
        try:
            packed = struct.pack("ii", len(entropy) * 8, len(entropy)) + entropy
            fcntl.ioctl(fd, RNDADDENTROPY, packed)
            fcntl.ioctl(fd, RNDRESEEDCRNG)
        finally:
            os.close(fd)

    def set_hostname(self, hostname: str) -> None:
        """Set the kernel's host name."""
        socket.sethostname(hostname)


class Identity:
    """The token in force, and how all of an identity is replaced."""

    def __init__(self, *, token_path: Path, machine_id_path: Path, gateway_socket: Path, kernel: GuestKernel) -> None:
        """Read the token that the boot left at `token_path`."""
        self.token = token_path.read_text(encoding="ascii").strip()
        self._token_path = token_path
        self._machine_id_path = machine_id_path
        self._gateway_socket = str(gateway_socket)
        self._kernel = kernel

    def replace(self, request: RekeyRequest) -> int:
        """Take on the identity in `request`; the old token is refused everywhere once this has returned.

        Returns:
            The wall clock, nanoseconds since the epoch.

        Raises:
            RekeyFailed: The gateway did not take the token, or the kernel refused a setting.
        """
        try:
            self._kernel.set_clock(request.time_ns)
            self._kernel.reseed(request.entropy)
            self._kernel.set_hostname(request.hostname)
            self._machine_id_path.write_text(request.machine_id + "\n", encoding="ascii")
            self._write_token(request.token)
            send_token(self._gateway_socket, request.token)
        except OSError as exc:
            with contextlib.suppress(OSError):
                self._write_token(self.token)
            raise RekeyFailed(str(exc)) from exc
        self.token = request.token
        return time.time_ns()

    def _write_token(self, token: str) -> None:
        # Written before the gateway is told: a gateway that restarts in between reads the file.
        fd = os.open(self._token_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(fd, token.encode("ascii"))
        finally:
            os.close(fd)


def send_token(gateway_socket: str, token: str) -> None:
    """Hand `token` to the gateway and wait until it is in force there.

    Raises:
        OSError: The gateway does not run, or did not confirm in time.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(GATEWAY_TIMEOUT_S)
        connection.connect(gateway_socket)
        connection.send(token.encode("ascii"))
        if connection.recv(16) != b"ok":
            raise ConnectionError("the kernel gateway did not confirm its new token")
