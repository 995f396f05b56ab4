"""Runs programs in a guest, and copies files, over SSH; with sftp.py the only module that imports paramiko.

Deadlines hold against a guest's sshd that goes silent, too: paramiko itself waits without limit for some answers, so
at the deadline the channel is closed under it.
"""

import logging
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

import paramiko

from deskfork.core.errors import TransportError
from deskfork.core.types import CommandResult
from deskfork.core.waiting import Deadline
from deskfork.transport import sftp
from deskfork.transport.endpoint import TcpEndpoint, open_socket
from deskfork.transport.ssh_command import command_line
from deskfork.transport.ssh_output import ChannelDrain

MAX_STREAM_BYTES = 32 * 1024 * 1024
"""What is kept of a command's stdout, and of its stderr; the rest is dropped."""
MAX_FETCH_BYTES = 256 * 1024 * 1024
_CONNECT_TIMEOUT_S = 30.0
_KILL_TIMEOUT_S = 10.0
_AFTER_EXIT_QUIET_S = 0.5
"""How long output may pause after the program has ended before whoever still holds its stdout is left alone."""
_SHELL_KILLED = 137
"""Exit code when our own shell in the guest was killed with the program; paramiko does not tell by which signal."""
_PARAMIKO_ERRORS = (paramiko.SSHException, EOFError, OSError)

# paramiko reports on its own thread by logging; the error reaches our caller anyway.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class SshClient:
    """One user's connection to a guest, made when it is first needed and kept.

    Threads may share it: commands then run side by side on the one connection.
    """

    def __init__(self, endpoint: TcpEndpoint, *, user: str, private_key: paramiko.PKey | Path, host_key: str) -> None:
        """Prepare a client; nothing is opened yet.

        Args:
            endpoint: Where sshd answers.
            user: The guest user.
            private_key: A key that sshd takes for this user, or the file that holds it.
            host_key: The guest's public host key, OpenSSH form: type, space, base64. No other is accepted.
        """
        self._endpoint = endpoint
        self._user = user
        self._private_key = private_key
        self._host_key = tuple(host_key.split()[:2])
        self._lock = threading.Lock()
        self._transport: paramiko.Transport | None = None

    @property
    def is_connected(self) -> bool:
        """Whether a connection is open: a call then needs none of the seconds that opening one takes."""
        with self._lock:
            return self._transport is not None and self._transport.is_active()

    def exec(
        self,
        argv: list[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: PurePosixPath | None = None,
        timeout_s: float,
    ) -> CommandResult:
        """Run one program, without a shell of the caller's and with nothing on its stdin, and wait for it.

        The result is there once the program has ended and its output has come to an end or has paused for half a
        second, so a child left in the background with the program's stdout does not hold it up.

        Args:
            argv: Program and arguments.
            env: Added to the user's environment.
            cwd: Working directory, the user's home by default; a missing one gives exit code 125.
            timeout_s: Limit, seconds; then the program's whole session is killed.

        Returns:
            Its exit code (127: no such program; 128 + n: ended by signal n) and up to MAX_STREAM_BYTES of each stream.

        Raises:
            ConfigError: `argv` or `env` cannot be passed to any program.
            TransportError: sshd did not take the command, or the connection was lost while it ran.
        """
        marker = secrets.token_hex(16)
        command = command_line(argv, env or {}, cwd, marker)
        started = time.monotonic()
        deadline = Deadline.after(timeout_s)
        channel = self._start(command, Deadline.after(timeout_s + _KILL_TIMEOUT_S))
        stdout = ChannelDrain(channel.recv, MAX_STREAM_BYTES, marker)
        stderr = ChannelDrain(channel.recv_stderr, MAX_STREAM_BYTES)
        try:
            has_ended = channel.status_event.wait(deadline.remaining_s)
            if not has_ended:
                self._kill(stdout, Deadline.after(_KILL_TIMEOUT_S), argv)
            elif channel.exit_status < 0 and not channel.get_transport().is_active():
                raise TransportError(f"ssh {self}: connection lost while {argv[0]} ran; it may have had its effect")
            for drain in (stdout, stderr):
                drain.wait_quiet(_AFTER_EXIT_QUIET_S, deadline if has_ended else Deadline.after(_AFTER_EXIT_QUIET_S))
            exit_code = -1 if not has_ended else channel.exit_status if channel.exit_status >= 0 else _SHELL_KILLED
        finally:
            _give_up(channel)
        return CommandResult(
            tuple(argv), exit_code, stdout.text(), stderr.text(), time.monotonic() - started, timed_out=not has_ended
        )

    def put(self, source: Path | bytes, target: PurePosixPath, *, timeout_s: float = 60.0) -> None:
        """Copy bytes, a host file or a host directory to the guest path `target`; see `sftp.put`."""
        with self._sftp(f"put {target}", timeout_s) as client:
            sftp.put(client, source, target)

    def get(
        self, source: PurePosixPath, target: Path, *, max_bytes: int = MAX_FETCH_BYTES, timeout_s: float = 60.0
    ) -> None:
        """Copy a guest file or directory to the host path `target`; see `sftp.get`."""
        with self._sftp(f"get {source}", timeout_s) as client:
            sftp.get(client, source, target, max_bytes)

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        with self._lock:
            if self._transport is not None:
                self._transport.close()
                self._transport = None

    def __str__(self) -> str:
        return f"{self._user}@{self._endpoint}"

    def _start(self, command: str, deadline: Deadline) -> paramiko.Channel:
        channel = self._open_session(deadline)
        with self._closing_at(channel, deadline, "start a command"):
            channel.exec_command(command.encode("utf-8", "surrogateescape"))
            channel.shutdown_write()
        return channel

    def _open_session(self, deadline: Deadline) -> paramiko.Channel:
        """Open a channel, on a new connection if the old one turns out to be dead: nothing was asked of it yet."""
        transport, is_new = self._connected(deadline)
        try:
            return transport.open_session(timeout=max(deadline.remaining_s, 0.001))
        except _PARAMIKO_ERRORS as exc:
            if is_new or (transport.is_active() and not isinstance(exc, EOFError)):
                raise TransportError(f"ssh {self}: open a channel: {type(exc).__name__}: {exc}") from exc
        self.close()
        transport, _ = self._connected(deadline)
        with _mapped(f"ssh {self}: open a channel"):
            return transport.open_session(timeout=max(deadline.remaining_s, 0.001))

    def _connected(self, deadline: Deadline) -> tuple[paramiko.Transport, bool]:
        with self._lock:
            if self._transport is not None and self._transport.is_active():
                return self._transport, False
            self._transport = self._connect(Deadline.after(min(_CONNECT_TIMEOUT_S, deadline.remaining_s)))
            return self._transport, True

    def _connect(self, deadline: Deadline) -> paramiko.Transport:
        key = self._private_key
        with _mapped(f"ssh {self}: connect"):
            if isinstance(key, Path):
                key = paramiko.PKey.from_path(key)
            transport = paramiko.Transport(open_socket(self._endpoint, deadline))
            try:
                _prefer_cheap(transport)
                transport.banner_timeout = transport.auth_timeout = max(deadline.remaining_s, 0.001)
                transport.start_client(timeout=deadline.remaining_s)
                found = transport.get_remote_server_key()
                if (found.get_name(), found.get_base64()) != self._host_key:
                    raise TransportError(f"ssh {self}: the host key is not the guest's: {found.get_name()}")
                transport.auth_publickey(self._user, key)
            except BaseException:
                transport.close()
                raise
            return transport

    def _kill(self, stdout: ChannelDrain, deadline: Deadline, argv: list[str]) -> None:
        """Kill the session of a command: sshd makes each command the leader of one."""
        pid = stdout.wait_pid(deadline)
        if pid is None:
            self.close()
            raise TransportError(f"ssh {self}: {argv[0]} had not started {_KILL_TIMEOUT_S:g} s after its deadline")
        channel = self._start(f"pkill -KILL -s {pid}; kill -KILL -- -{pid}", deadline)
        channel.status_event.wait(deadline.remaining_s)
        channel.close()

    @contextmanager
    def _sftp(self, what: str, timeout_s: float) -> Iterator[paramiko.SFTPClient]:
        deadline = Deadline.after(timeout_s)
        channel = self._open_session(deadline)
        with self._closing_at(channel, deadline, what):
            channel.settimeout(timeout_s)
            channel.invoke_subsystem("sftp")
            client = paramiko.SFTPClient(channel)
            try:
                yield client
            finally:
                client.close()

    @contextmanager
    def _closing_at(self, channel: paramiko.Channel, deadline: Deadline, what: str) -> Iterator[None]:
        timer = threading.Timer(deadline.remaining_s, _give_up, [channel])
        timer.daemon = True
        timer.start()
        try:
            with _mapped(f"ssh {self}: {what}"):
                yield
        finally:
            timer.cancel()


def _give_up(channel: paramiko.Channel) -> None:
    # On a connection that is gone by now there is nobody to tell.
    with suppress(*_PARAMIKO_ERRORS):
        channel.close()


@contextmanager
def _mapped(what: str) -> Iterator[None]:
    try:
        yield
    except (*_PARAMIKO_ERRORS, paramiko.SFTPError, UnicodeError, ValueError) as exc:
        raise TransportError(f"{what}: {type(exc).__name__}: {exc}") from exc


def _prefer_cheap(transport: paramiko.Transport) -> None:
    # An emulated guest computes every cipher slowly; these are the cheapest that Debian 12's sshd offers.
    options = transport.get_security_options()
    options.kex = ("curve25519-sha256@libssh.org",)
    options.key_types = ("ssh-ed25519",)
    options.ciphers = ("aes128-gcm@openssh.com", "aes128-ctr")
    options.digests = ("hmac-sha2-256-etm@openssh.com", "hmac-sha2-256")
    options.compression = ("none",)
