"""Whether the guest's services answer, asked without starting a program."""

import http.client
import json
from pathlib import Path

from deskfork_guest.desktop import DesktopReader, DesktopUnavailable
from deskfork_guest.schema import Services

GATEWAY_PORT = 60001
TCP_LISTEN = "0A"
PROBE_TIMEOUT_S = 2.0


def probe_services(desktop: DesktopReader, token: str) -> Services:
    """Ask X, the session, the gateway and sshd."""
    try:
        has_session = desktop.has_session()
        has_x = True
    except DesktopUnavailable:
        has_x = has_session = False
    return Services(x=has_x, session=has_session, gateway=is_gateway_ready(token), sshd=is_listening(22))


def is_listening(port: int, *, proc_net: Path = Path("/proc/net")) -> bool:
    """Whether some process listens on TCP `port`; connecting instead would make sshd fork at every look."""
    for table in ("tcp", "tcp6"):
        for line in (proc_net / table).read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == TCP_LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                return True
    return False


def is_gateway_ready(token: str, *, port: int = GATEWAY_PORT) -> bool:
    """Whether the gateway accepts `token` and has a kernel that waits for code."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_TIMEOUT_S)
    try:
        connection.request("GET", "/api/kernels", headers={"Authorization": f"token {token}"})
        reply = connection.getresponse()
        kernels = json.loads(reply.read())
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()
    return reply.status == 200 and any(kernel.get("execution_state") == "idle" for kernel in kernels)
