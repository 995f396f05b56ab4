"""The open channels into one guest: kernel, observer, SSH as user and as root."""

import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from deskfork.core.waiting import Deadline
from deskfork.transport.endpoint import TcpEndpoint
from deskfork.transport.kernel import KernelClient
from deskfork.transport.observer import ObserverClient
from deskfork.transport.ssh import SshClient


@dataclass
class Channels:
    """Clients of one guest; SSH connects when it is first used."""

    token: str
    """What kernel gateway and observer want."""
    kernel: KernelClient
    observer: ObserverClient
    user_ssh: SshClient
    root_ssh: SshClient

    @classmethod
    def to(
        cls, endpoints: dict[str, TcpEndpoint], *, name: str, token: str, private_key: Path, ssh_host_key: str
    ) -> Self:
        """Name the clients; nothing is connected yet."""
        user, root = (
            SshClient(endpoints["ssh"], user=user, private_key=private_key, host_key=ssh_host_key)
            for user in ("user", "root")
        )
        return cls(
            token,
            KernelClient(endpoints["kernel"], token, name=name),
            ObserverClient(endpoints["observer"], token),
            user,
            root,
        )

    def adopt(self, name: str, endpoint: TcpEndpoint, kernel_id: str, deadline: Deadline) -> None:
        """Give a fresh fork its own clock, random numbers, host name and tokens; then connect its kernel.

        Raises:
            TransportError: The guest did not answer by the deadline.
        """
        token = secrets.token_hex(16)
        self.observer.rekey(
            token,
            time_ns=time.time_ns(),
            entropy=os.urandom(64),
            hostname=f"desktop-{name}",
            machine_id=secrets.token_hex(16),
            deadline=deadline,
        )
        self.token = token
        self.kernel = KernelClient(endpoint, token, name=name)
        self.kernel.connect(kernel_id, deadline=deadline)

    def close(self) -> None:
        """Close all of them."""
        for client in (self.kernel, self.observer, self.user_ssh, self.root_ssh):
            client.close()
