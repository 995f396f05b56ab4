"""Guards the first words with a fresh fork: a guest that never answers must not hold us beyond the deadline."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deskfork.core.errors import TransportError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.channels import Channels
from deskfork.transport.endpoint import TcpEndpoint


@pytest.fixture
def silence() -> Iterator[TcpEndpoint]:
    """A port that takes connections, as QEMU does for a guest that hangs, and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield TcpEndpoint("127.0.0.1", listener.getsockname()[1])


def test_a_guest_that_never_answers_is_given_up_at_the_deadline(silence: TcpEndpoint, tmp_path: Path) -> None:
    endpoints = dict.fromkeys(("kernel", "observer", "ssh"), silence)
    channels = Channels.to(endpoints, name="mute", token="t", private_key=tmp_path / "key", ssh_host_key="")
    started = time.monotonic()
    with pytest.raises(TransportError):
        channels.adopt("mute", silence, "kernel-id", Deadline.after(0.5))
    channels.close()
    assert time.monotonic() - started < 5
