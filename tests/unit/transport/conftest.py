"""Real services on free loopback ports, and peers that answer what a test tells them to."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deskfork.core.errors import TransportError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.transport.endpoint import TcpEndpoint, open_socket
from deskfork.transport.kernel import KernelClient

Talk = Callable[[socket.socket], None]


def free_endpoint() -> TcpEndpoint:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return TcpEndpoint("127.0.0.1", probe.getsockname()[1])


def wait_for_port(endpoint: TcpEndpoint, timeout_s: float = 30.0) -> None:
    def probe() -> bool:
        with suppress(TransportError):
            open_socket(endpoint, Deadline.after(1.0)).close()
            return True
        return False

    assert wait_until(probe, Deadline.after(timeout_s)), f"nothing listens at {endpoint}"


@dataclass
class Peer:
    """A server that handles each connection by calling `talk` on a thread."""

    talk: Talk
    address: object = ("127.0.0.1", 0)
    connections: int = 0
    _open: list[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        family = socket.AF_INET if isinstance(self.address, tuple) else socket.AF_UNIX
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.bind(self.address)
        self.listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def endpoint(self) -> TcpEndpoint:
        return TcpEndpoint(*self.listener.getsockname())

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                accepted, _ = self.listener.accept()
                self.connections += 1
                self._open.append(accepted)
                threading.Thread(target=self._talk, args=(accepted,), daemon=True).start()

    def _talk(self, accepted: socket.socket) -> None:
        with suppress(OSError):
            self.talk(accepted)

    def close(self) -> None:
        # close() alone does not wake a thread that waits in accept().
        for each in (self.listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture
def peer() -> Iterator[Callable[..., Peer]]:
    peers: list[Peer] = []

    def start(talk: Talk, address: object = ("127.0.0.1", 0)) -> Peer:
        peers.append(Peer(talk, address))
        return peers[-1]

    yield start
    for each in peers:
        each.close()


@dataclass
class Gateway:
    endpoint: TcpEndpoint
    token: str
    process: "subprocess.Popen[bytes]"


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A real kernel gateway with one real IPython kernel."""
    endpoint, token, home = free_endpoint(), secrets.token_hex(16), tmp_path_factory.mktemp("gateway")
    command = [
        *(sys.executable, "-m", "kernel_gateway", f"--KernelGatewayApp.ip={endpoint.host}"),
        *(f"--KernelGatewayApp.port={endpoint.port}", "--KernelGatewayApp.port_retries=0"),
        *("--JupyterWebsocketPersonality.list_kernels=True", "--KernelGatewayApp.prespawn_count=1"),
        "--ZMQChannelsWebsocketConnection.limit_rate=False",
    ]
    environment = {
        **os.environ,
        "KG_AUTH_TOKEN": token,
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
    }
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, cwd=home, stdout=log, stderr=log)
        try:
            wait_for_port(endpoint)
            yield Gateway(endpoint, token, process)
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture
def kernel(gateway: Gateway) -> Iterator[KernelClient]:
    client = KernelClient(gateway.endpoint, gateway.token, name="test")
    client.connect(None, deadline=Deadline.after(20))
    yield client
    client.close()


@dataclass
class Sshd:
    endpoint: TcpEndpoint
    private_key: Path
    host_key: str
    process: "subprocess.Popen[bytes]"


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Debian's own sshd, for root, with keys of this run."""
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    if program is None or os.geteuid() != 0:
        pytest.skip("needs root and Debian's openssh-server")
    home, endpoint = tmp_path_factory.mktemp("sshd"), free_endpoint()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / name)], check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    options = {
        "ListenAddress": endpoint.host,
        "AuthorizedKeysFile": str(home / "user.pub"),
        "PermitRootLogin": "prohibit-password",
        "StrictModes": "no",
        "UsePAM": "no",
        "PidFile": "none",
        "MaxSessions": "100",
        "Subsystem": "sftp internal-sftp",
    }
    command = [program, "-D", "-e", "-f", "/dev/null", "-h", str(home / "host"), "-p", str(endpoint.port)]
    for name, value in options.items():
        command += ["-o", f"{name}={value}"]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_for_port(endpoint)
            yield Sshd(endpoint, home / "user", (home / "host.pub").read_text(), process)
        finally:
            process.terminate()
            process.wait(20)
