"""Guards against commands that outlive their deadline, run twice, or reach another host; on a real sshd."""

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import paramiko
import pytest
from paramiko import common
from transport_services import Sshd, StartPeer, processes_mentioning

from deskfork.core.errors import ConfigError, TransportError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.transport.ssh import MAX_STREAM_BYTES, SshClient


@pytest.fixture(scope="module")
def ssh(sshd: Sshd) -> Iterator[SshClient]:
    client = SshClient(sshd.endpoint, user="root", private_key=sshd.private_key, host_key=sshd.host_key)
    yield client
    client.close()


def test_arguments_arrive_as_they_are(ssh: SshClient) -> None:
    argv = ["printf", "%s|", "a b", "$HOME", "'\"", "*", "--", "", "ü\n;"]
    result = ssh.exec(argv, timeout_s=10)
    assert result.argv == tuple(argv)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "a b|$HOME|'\"|*|--||ü\n;|", "")
    assert not result.timed_out


def test_streams_are_separate_and_undecodable_bytes_replaced(ssh: SshClient) -> None:
    result = ssh.exec(["sh", "-c", r"printf 'out\377'; printf err >&2"], timeout_s=10)
    assert (result.stdout, result.stderr) == ("out\ufffd", "err")


@pytest.mark.parametrize(
    ("argv", "exit_code"),
    [
        (["no-such-program"], 127),
        (["/etc/passwd"], 126),
        (["sh", "-c", "exit 3"], 3),
        (["sh", "-c", "kill -KILL $$"], 137),
        (["sh", "-c", "kill -KILL 0"], 137),
        (["sh", "-c", "kill -SEGV $$"], 139),
    ],
)
def test_failing_is_a_result(ssh: SshClient, argv: list[str], exit_code: int) -> None:
    assert ssh.exec(argv, timeout_s=10).exit_code == exit_code


def test_environment_and_working_directory_are_set(ssh: SshClient) -> None:
    result = ssh.exec(["sh", "-c", 'echo "$A"; pwd'], env={"A": "x 'y' = $z"}, cwd=PurePosixPath("/usr"), timeout_s=10)
    assert result.stdout == "x 'y' = $z\n/usr\n"
    missing = ssh.exec(["pwd"], cwd=PurePosixPath("/no such"), timeout_s=10)
    assert missing.exit_code == 125
    assert "/no such" in missing.stderr


def test_stdin_is_empty(ssh: SshClient) -> None:
    assert ssh.exec(["cat"], timeout_s=10).exit_code == 0


@pytest.mark.parametrize(
    ("argv", "env"),
    [([], {}), ([""], {}), (["a=b"], {}), (["x", "a\0b"], {}), (["x"], {"A B": "c"}), (["x"], {"A": "\0"})],
)
def test_what_no_program_can_be_given_is_refused(ssh: SshClient, argv: list[str], env: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        ssh.exec(argv, env=env, timeout_s=10)


def test_an_overrunning_command_is_killed_with_all_its_children(ssh: SshClient) -> None:
    script = "echo begun; sleep 98761 & timeout 98762 sleep 98763 & trap '' TERM HUP INT; sleep 98764; sleep 98765"
    started = time.monotonic()
    result = ssh.exec(["sh", "-c", script], timeout_s=1)
    assert time.monotonic() - started < 8
    assert (result.timed_out, result.exit_code, result.stdout) == (True, -1, "begun\n")
    for number in range(98761, 98766):
        assert processes_mentioning(str(number)) == []
    assert ssh.exec(["echo", "still here"], timeout_s=10).stdout == "still here\n"


def test_a_background_child_that_holds_stdout_does_not_hold_up_the_result(ssh: SshClient) -> None:
    started = time.monotonic()
    result = ssh.exec(["sh", "-c", "sleep 98771 & echo $!"], timeout_s=30)
    assert time.monotonic() - started < 5
    assert (result.exit_code, result.timed_out) == (0, False)
    assert int(result.stdout) in processes_mentioning("98771")
    ssh.exec(["kill", result.stdout.strip()], timeout_s=10)


def test_endless_output_is_bounded_and_killed(ssh: SshClient) -> None:
    result = ssh.exec(["yes", "98781"], timeout_s=2)
    assert result.timed_out
    assert len(result.stdout) <= MAX_STREAM_BYTES
    assert processes_mentioning("98781") == []


def test_output_beyond_the_bound_does_not_stop_the_program(ssh: SshClient) -> None:
    result = ssh.exec(["sh", "-c", "head -c 50000000 /dev/zero >&2; echo end"], timeout_s=30)
    assert (result.exit_code, result.stdout, len(result.stderr)) == (0, "end\n", MAX_STREAM_BYTES)


def test_commands_run_side_by_side_on_one_connection(ssh: SshClient) -> None:
    results: list[str] = []
    threads = [
        threading.Thread(
            target=lambda n=n: results.append(ssh.exec(["sh", "-c", f"sleep 0.5; echo {n}"], timeout_s=20).stdout)
        )
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(results) == ["0\n", "1\n", "2\n", "3\n"]


def test_a_connection_that_died_between_commands_is_made_anew(sshd: Sshd) -> None:
    client = SshClient(sshd.endpoint, user="root", private_key=sshd.private_key, host_key=sshd.host_key)
    assert client.exec(["true"], timeout_s=10).exit_code == 0
    assert client._transport is not None
    client._transport.sock.shutdown(2)
    assert client.exec(["true"], timeout_s=10).exit_code == 0
    client.close()
    assert client.exec(["true"], timeout_s=10).exit_code == 0
    client.close()


def test_a_connection_lost_during_a_command_is_an_error_and_the_command_not_repeated(
    sshd: Sshd, tmp_path: Path
) -> None:
    client = SshClient(sshd.endpoint, user="root", private_key=sshd.private_key, host_key=sshd.host_key)
    runs = tmp_path / "runs"

    def cut_once_it_runs() -> None:
        assert wait_until(runs.exists, Deadline.after(10))
        assert client._transport is not None
        client._transport.sock.shutdown(2)

    cutter = threading.Thread(target=cut_once_it_runs)
    cutter.start()
    with pytest.raises(TransportError, match="lost"):
        client.exec(["sh", "-c", f"echo x >> {runs}; sleep 3"], timeout_s=10)
    cutter.join(10)
    assert runs.read_text() == "x\n"
    client.close()


def test_another_host_key_is_refused_before_we_log_in(sshd: Sshd, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")], check=True)
    client = SshClient(
        sshd.endpoint, user="root", private_key=sshd.private_key, host_key=(tmp_path / "other.pub").read_text()
    )
    with pytest.raises(TransportError, match="host key"):
        client.exec(["true"], timeout_s=10)
    client.close()


def test_another_private_key_is_refused_as_a_transport_error(sshd: Sshd, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")], check=True)
    for key in (tmp_path / "other", paramiko.PKey.from_path(tmp_path / "other")):
        client = SshClient(sshd.endpoint, user="root", private_key=key, host_key=sshd.host_key)
        with pytest.raises(TransportError, match="Authentication"):
            client.exec(["true"], timeout_s=10)
        client.close()


def test_a_missing_or_broken_private_key_is_a_transport_error(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("no key")
    for key in (tmp_path / "missing", tmp_path / "broken"):
        client = SshClient(sshd.endpoint, user="root", private_key=key, host_key=sshd.host_key)
        with pytest.raises(TransportError):
            client.exec(["true"], timeout_s=10)


def test_the_cheap_algorithms_are_in_use(ssh: SshClient) -> None:
    ssh.exec(["true"], timeout_s=10)
    transport: Any = ssh._transport
    assert transport.remote_cipher == "aes128-gcm@openssh.com"
    assert transport.remote_compression == "none"


def test_an_sshd_that_falls_silent_is_given_up_at_the_deadline(peer: StartPeer, tmp_path: Path) -> None:
    def talk(connection: socket.socket) -> None:
        server = paramiko.Transport(connection)
        server.add_server_key(host)
        server.start_server(server=Silent())
        silent.append(server)
        server.join(10)

    class Silent(paramiko.ServerInterface):
        def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
            return int(common.AUTH_SUCCESSFUL)

        def get_allowed_auths(self, username: str) -> str:
            return "publickey"

        def check_channel_request(self, kind: str, chanid: int) -> int:
            return int(common.OPEN_SUCCEEDED)

        def check_channel_subsystem_request(self, channel: paramiko.Channel, name: str) -> bool:
            threading.Event().wait(4)
            return False

    silent: list[paramiko.Transport] = []
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    host = paramiko.PKey.from_path(tmp_path / "key")
    server = peer(talk)
    client = SshClient(server.endpoint, user="x", private_key=host, host_key=f"{host.get_name()} {host.get_base64()}")
    started = time.monotonic()
    with pytest.raises(TransportError):
        client.put(b"x", PurePosixPath("/tmp/x"), timeout_s=1)
    assert time.monotonic() - started < 3
    client.close()
    for each in silent:
        each.close()
