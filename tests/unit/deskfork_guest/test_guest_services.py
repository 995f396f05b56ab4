"""The health probes tell a service that answers from one that does not, without connecting to it."""

import socket
from pathlib import Path

import pytest

from deskfork_guest.desktop import DesktopReader, DesktopUnavailable
from deskfork_guest.services import is_gateway_ready, is_listening, probe_services


def test_a_port_is_listening_only_while_someone_listens() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        assert not is_listening(port)
        listener.listen()
        assert is_listening(port)
    assert not is_listening(port)


def test_an_established_connection_is_not_a_listener(tmp_path: Path) -> None:
    header = "  sl  local_address rem_address   st\n"
    (tmp_path / "tcp").write_text(header + "   0: 0F02000A:0016 0202000A:C350 01 00000000:00000000\n")
    (tmp_path / "tcp6").write_text(header)
    assert not is_listening(22, proc_net=tmp_path)
    (tmp_path / "tcp6").write_text(header + "   0: 00000000000000000000000000000000:0016 0:0000 0A 0:0\n")
    assert is_listening(22, proc_net=tmp_path)


def test_a_gateway_that_talks_nonsense_is_not_ready() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        # Nobody accepts: the request runs into its own deadline.
        assert not is_gateway_ready("token", port=listener.getsockname()[1])


def test_without_x_there_is_no_session_either() -> None:
    services = probe_services(DesktopReader(":4711"), "token")
    assert not services.x
    assert not services.session


def test_a_lost_x_server_is_an_error_of_its_own() -> None:
    with pytest.raises(DesktopUnavailable, match=":4711"):
        DesktopReader(":4711").read()
