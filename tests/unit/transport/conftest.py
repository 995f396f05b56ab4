"""Real services on free loopback ports, and peers that answer what a test tells them to."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from transport_services import Gateway, Peer, Sshd, StartPeer, Talk, free_endpoint, processes_mentioning, wait_for_port

from deskfork.core.waiting import Deadline
from deskfork.transport.kernel import KernelClient


@pytest.fixture
def peer() -> Iterator[StartPeer]:
    peers: list[Peer] = []

    def start(talk: Talk, address: tuple[str, int] | str = ("127.0.0.1", 0)) -> Peer:
        peers.append(Peer(talk, address))
        return peers[-1]

    yield start
    for each in peers:
        each.close()


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
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                # It waits for a kernel that a test left busy.
                process.kill()
                process.wait(20)
            # A kernel that the gateway was just restarting outlives it.
            for kernel_process in processes_mentioning(str(home)):
                os.kill(kernel_process, signal.SIGKILL)


@pytest.fixture
def kernel(gateway: Gateway) -> Iterator[KernelClient]:
    client = KernelClient(gateway.endpoint, gateway.token, name="test")
    client.connect(None, deadline=Deadline.after(20))
    yield client
    client.close()


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
