"""A real IPython kernel behind a real gateway on loopback stands in for the guest's; its screen is drawn here."""

import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from deskfork.agent.build import AgentOutcome, run_agent
from deskfork.agent.config import AgentConfig
from deskfork.agent.limits import Limits
from deskfork.core.errors import TransportError
from deskfork.core.types import AccessibilityTree, AccessibleNode, CellResult, DesktopState, Window
from deskfork.core.waiting import Deadline, wait_until
from deskfork.records.trajectory import StepRecord
from deskfork.transport.endpoint import TcpEndpoint
from deskfork.transport.kernel import KernelClient

SIZE = (1280, 800)


@dataclass
class Screens:
    """Keeps nothing but the number of each screen."""

    saved: list[int] = field(default_factory=list)

    def save(self, image: Image.Image, step: int) -> str:
        assert image.width * SIZE[1] == image.height * SIZE[0]
        self.saved.append(step)
        return f"screens/{step:03d}.png"


class ScreenOnlyGuest:
    """A guest whose cells do what `answer` says; every screenshot has another colour."""

    def __init__(self, answer: Callable[[str], CellResult] | None = None) -> None:
        self.answer = answer or (lambda code: CellResult("", "", (), 0.0))
        self.cells: list[tuple[str, float]] = []
        self.shots = 0
        self.screen_error: Exception | None = None
        self.nodes: list[AccessibleNode] = []
        self.is_partial = False

    def run_cell(self, code: str, *, timeout_s: float) -> CellResult:
        self.cells.append((code, timeout_s))
        return self.answer(code)

    def screenshot(self) -> Image.Image:
        if self.screen_error:
            raise self.screen_error
        self.shots += 1
        return Image.new("RGB", SIZE, (self.shots % 256, 0, 0))

    def desktop(self) -> DesktopState:
        window = Window("a\nb'c", "x", 1, 2, 640, 480, True)
        return DesktopState(*SIZE, 10, 20, (window,) * 60)

    def accessibility(self) -> AccessibilityTree:
        return AccessibilityTree(tuple(self.nodes), is_partial=self.is_partial, seconds=0.0)


class KernelGuest(ScreenOnlyGuest):
    """A guest whose cells run in a real kernel of this machine."""

    def __init__(self, client: KernelClient) -> None:
        super().__init__()
        self.client = client

    def run_cell(self, code: str, *, timeout_s: float) -> CellResult:
        self.cells.append((code, timeout_s))
        return self.client.run_cell(code, timeout_s=timeout_s)


@dataclass
class Ran:
    """What one run of an agent left."""

    outcome: AgentOutcome | None
    records: list[StepRecord]
    screens: Screens
    error: BaseException | None = None


@pytest.fixture
def run() -> Callable[..., Ran]:
    def run_it(
        config: AgentConfig, guest: Any, cells: list[str] | None = None, limits: Limits | None = None, **expect: Any
    ) -> Ran:
        records: list[StepRecord] = []
        screens = Screens()
        arguments: dict[str, Any] = {
            "instruction": "Do the thing.",
            "guest": guest,
            "solution_cells": cells,
            "limits": limits or Limits(),
            "screens": screens,
            "on_step": records.append,
        }
        if "raises" in expect:
            with pytest.raises(expect["raises"]) as caught:
                run_agent(config, **arguments)
            return Ran(None, records, screens, caught.value)
        return Ran(run_agent(config, **arguments), records, screens)

    return run_it


@pytest.fixture
def screen_guest() -> type[ScreenOnlyGuest]:
    return ScreenOnlyGuest


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(5)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TcpEndpoint, str]]:
    port, token, home = _free_port(), secrets.token_hex(8), tmp_path_factory.mktemp("gateway")
    options = {
        "KernelGatewayApp.ip": "127.0.0.1",
        "KernelGatewayApp.port": port,
        "KernelGatewayApp.port_retries": 0,
        "KernelGatewayApp.auth_token": token,
        "KernelGatewayApp.prespawn_count": 1,
        "JupyterWebsocketPersonality.list_kernels": True,
    }
    command = [
        sys.executable,
        "-m",
        "jupyter",
        "kernelgateway",
        *(f"--{key}={value}" for key, value in options.items()),
    ]
    env = {"HOME": str(home), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "IPYTHONDIR": str(home)}
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=home, env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        endpoint = TcpEndpoint("127.0.0.1", port)

        def is_up() -> bool | None:
            client = KernelClient(endpoint, token, name="probe")
            try:
                client.connect(None, deadline=Deadline.after(5.0))
                return True
            except TransportError:
                assert process.poll() is None, (home / "log").read_text()
                return None
            finally:
                client.close()

        assert wait_until(is_up, Deadline.after(60.0), interval_s=0.2), (home / "log").read_text()
        yield endpoint, token
    finally:
        _end(process)


@pytest.fixture
def kernel_guest(gateway: tuple[TcpEndpoint, str]) -> Iterator[KernelGuest]:
    endpoint, token = gateway
    client = KernelClient(endpoint, token, name="test")
    client.connect(None, deadline=Deadline.after(20.0))
    try:
        yield KernelGuest(client)
    finally:
        client.close()
