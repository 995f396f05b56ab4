"""Starts the Jupyter Kernel Gateway so that its token can be replaced while it runs.

Jupyter Kernel Gateway 3.0 compares `web_app.settings["kg_auth_token"]` on each REST request and WebSocket
handshake (kernel_gateway/mixins.py), and jupyter_server asks `identity_provider.token`; both are read per request,
so replacing the two takes effect with the next request. SIGHUP would do to trigger that, but whoever sends one
never learns when it was obeyed: hence a socket that answers.
"""

import os
import socket
import struct
from pathlib import Path
from typing import Any

from kernel_gateway.gatewayapp import KernelGatewayApp
from traitlets.config import Config

PORT = 60001
KERNEL_DIR = "/opt/deskfork/share/jupyter/kernels"
CONTROL_SOCKET = Path("/run/deskfork-gateway/control")
PEER_TIMEOUT_S = 5.0
WARM_UP_TIMEOUT_S = 120.0


def make_gateway(token: str, *, ip: str, port: int, kernel_dirs: list[str]) -> Any:
    """Make a gateway, listening, with one kernel about to be spawned; its `start()` serves until it is told to stop."""
    config = Config()
    config.KernelGatewayApp.ip = ip
    config.KernelGatewayApp.port = port
    # Otherwise a busy port makes it listen on the next one, without a word.
    config.KernelGatewayApp.port_retries = 0
    config.KernelGatewayApp.auth_token = token
    config.KernelGatewayApp.prespawn_count = 1
    config.KernelGatewayApp.log_level = "WARN"
    config.JupyterWebsocketPersonality.list_kernels = True
    # A fork's connections are new ones, and the host sets its own deadlines: pings would only cost the guest CPU.
    config.KernelGatewayApp.ws_ping_interval = 0
    # Unix sockets between gateway and kernel: less work for an emulated CPU than TCP.
    config.KernelManager.transport = "ipc"
    config.ZMQChannelsWebsocketConnection.limit_rate = False
    gateway = KernelGatewayApp(config=config)
    gateway.initialize([])
    gateway.kernel_spec_manager.kernel_dirs = kernel_dirs
    spawn = gateway.personality.init_configurables

    async def spawn_and_warm() -> None:
        is_ready = False
        try:
            await spawn()
            for kernel_id in gateway.kernel_manager.list_kernel_ids():
                await warm_kernel(gateway.kernel_manager.get_kernel(kernel_id))
            is_ready = True
        finally:
            if not is_ready:
                # A gateway without its kernel goes on serving, and hangs on SIGTERM: let systemd start another.
                gateway.log.critical("the kernel did not start", exc_info=True)
                os._exit(1)

    gateway.personality.init_configurables = spawn_and_warm
    return gateway


async def warm_kernel(kernel: Any) -> None:
    """Have `kernel` run an empty cell, so that it is known to work and has imported what it imports lazily.

    Until then the gateway reports its state as `starting`, afterwards as `idle`; its execution count stays 0.
    """
    client = kernel.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=WARM_UP_TIMEOUT_S)
        client.execute("", silent=True, store_history=False)
        await client.get_shell_msg(timeout=WARM_UP_TIMEOUT_S)
    finally:
        client.stop_channels()


def replace_token(gateway: Any, token: str) -> None:
    """Let `gateway` accept `token`, and no other, from the next request on."""
    gateway.auth_token = token
    gateway.identity_provider.token = token
    gateway.web_app.settings["kg_auth_token"] = token


def serve_control(gateway: Any, path: Path, *, allowed_uid: int) -> socket.socket:
    """Listen on the Unix socket `path` for new tokens from processes of `allowed_uid`; each is answered with `ok`."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(path))
    listener.listen(8)
    listener.setblocking(False)

    def accept() -> None:
        connection, _ = listener.accept()
        with connection:
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            if struct.unpack("3i", credentials)[1] != allowed_uid:
                return
            connection.settimeout(PEER_TIMEOUT_S)
            try:
                token = connection.recv(4096).decode("ascii")
                if token:
                    replace_token(gateway, token)
                    connection.send(b"ok")
            except (OSError, UnicodeDecodeError) as exc:
                gateway.log.warning("control socket: %s", exc)

    gateway.io_loop.asyncio_loop.add_reader(listener.fileno(), accept)
    return listener


def main() -> None:
    """Serve on the contract's port with the token that systemd hands over as a credential."""
    token = Path(os.environ["CREDENTIALS_DIRECTORY"], "token").read_text(encoding="ascii").strip()
    # All addresses: the guest's own network ends at the hypervisor, which decides what is forwarded.
    gateway = make_gateway(token, ip="0.0.0.0", port=PORT, kernel_dirs=[KERNEL_DIR])
    with serve_control(gateway, CONTROL_SOCKET, allowed_uid=0):
        gateway.start()


if __name__ == "__main__":
    main()
