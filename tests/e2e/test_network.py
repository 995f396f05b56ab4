"""Guards the way out of a guest: closed unless it was asked for."""

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import Sandbox
from deskfork.sandbox.provider import VmProvider

SOON_S = 60.0
CONNECT = "import socket; socket.create_connection(({host!r}, {port}), 3).sendall(b'x')"
# A query for the address of example.com; the guest's resolver is QEMU's own.
ASK_NAME = r"""
import socket
query = b"\0\1\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
    channel.settimeout(2)
    channel.sendto(query, ("10.0.2.3", 53))
    channel.recv(512)
"""


def host_address(sandbox: Sandbox) -> tuple[str, str]:
    """Return an address of this machine to listen at, and the one by which a guest with a network finds it."""
    if sandbox.facts.provider == "qemu":
        return "127.0.0.1", "10.0.2.2"
    # In a container 10.0.2.2 is the container itself; this machine is its gateway.
    command = ["docker", "inspect", f"deskfork-{sandbox.facts.id}", "-f", "{{.NetworkSettings.Gateway}}"]
    gateway = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    return gateway, gateway


@contextmanager
def listening(address: str) -> Iterator[tuple[int, list[str]]]:
    """Listen at `address`; yield the port, and a list that grows by every connection."""
    callers: list[str] = []
    with socket.create_server((address, 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, caller = listener.accept()
                except OSError:
                    return
                connection.close()
                callers.append(str(caller))

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listener.getsockname()[1], callers
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(SOON_S)


def test_a_guest_has_no_way_out(provider: VmProvider) -> None:
    with provider.fork("desktop") as sandbox:
        assert sandbox.facts.network is False
        address, seen_as = host_address(sandbox)
        with listening(address) as (port, callers):
            for host in {seen_as, "10.0.2.2"}:
                assert sandbox.run_cell(CONNECT.format(host=host, port=port), timeout_s=SOON_S).error is not None
        assert callers == []
        assert sandbox.run_cell(ASK_NAME, timeout_s=SOON_S).error is not None


def test_a_guest_that_was_given_a_network_reaches_the_host(provider: VmProvider) -> None:
    with provider.fork("desktop", network=True) as sandbox:
        assert sandbox.facts.network is True
        address, seen_as = host_address(sandbox)
        with listening(address) as (port, callers):
            assert sandbox.run_cell(CONNECT.format(host=seen_as, port=port), timeout_s=SOON_S).error is None
            assert wait_until(lambda: len(callers) == 1, Deadline.after(10)), callers
