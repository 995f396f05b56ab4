"""Guards against an observer client that disagrees with the guest's models, keeps old tokens, or believes anything."""

import base64
import io
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import uvicorn
from fastapi import FastAPI, Header, HTTPException, Response
from PIL import Image
from transport_services import StartPeer

from deskfork.core.errors import TransportError
from deskfork.core.types import AccessibilityTree, AccessibleNode, DesktopState, Window
from deskfork.core.waiting import Deadline, wait_until
from deskfork.transport.endpoint import TcpEndpoint
from deskfork.transport.observer import ObserverClient
from deskfork_guest import schema


@dataclass
class FakeGuest:
    """Answers with the guest's own wire models, or with what a test puts in `instead`."""

    token: str = "first-token-0123456"
    instead: Response | None = None
    rekeyed: list[schema.RekeyRequest] = field(default_factory=list)

    def app(self) -> FastAPI:
        app = FastAPI(openapi_url=None)
        services = schema.Services(x=True, session=True, gateway=True, sshd=True)

        def check(authorization: str) -> None:
            if authorization != f"Bearer {self.token}":
                raise HTTPException(401)

        @app.get("/health", response_model=None)
        def health(authorization: str = Header("")) -> schema.Health | Response:
            check(authorization)
            key = "ssh-ed25519 AAAA"
            said = schema.Health(status="ok", boot_id="b", services=services, ssh_host_key=key, time_ns=5)
            return self.instead or said

        @app.post("/rekey", response_model=None)
        def rekey(request: schema.RekeyRequest, authorization: str = Header("")) -> schema.RekeyReply | Response:
            check(authorization)
            self.rekeyed.append(request)
            self.token = request.token
            return self.instead or schema.RekeyReply(time_ns=request.time_ns + 1)

        @app.get("/desktop", response_model=None)
        def desktop(authorization: str = Header("")) -> schema.Desktop | Response:
            check(authorization)
            window = schema.Window(
                id=1, title="T", wm_class="c.C", pid=None, x=-5, y=2, width_px=30, height_px=40, active=True
            )
            pointer = schema.Pointer(x=7, y=8)
            return self.instead or schema.Desktop(
                width_px=1280, height_px=800, pointer=pointer, active_window="T", windows=[window]
            )

        @app.get("/screenshot")
        def screenshot(authorization: str = Header("")) -> Response:
            check(authorization)
            sink = io.BytesIO()
            Image.new("RGBA", (6, 4), (1, 2, 3, 255)).save(sink, "PNG")
            return self.instead or Response(sink.getvalue(), media_type="image/png")

        @app.get("/accessibility", response_model=None)
        def accessibility(authorization: str = Header("")) -> schema.AccessibilityTree | Response:
            check(authorization)
            node = schema.AccessibleNode(
                depth=0,
                role="push button",
                name="Run",
                text="",
                states=["focused"],
                x=1,
                y=2,
                width_px=3,
                height_px=4,
                app="Chromium",
                clickable=True,
            )
            return self.instead or schema.AccessibilityTree(nodes=[node], is_partial=True, duration_s=0.5)

        return app


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[FakeGuest, TcpEndpoint]]:
    guest = FakeGuest()
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(guest.app(), log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    assert wait_until(lambda: server.started, Deadline.after(20))
    yield guest, TcpEndpoint(*listener.getsockname())
    server.should_exit = True
    thread.join(20)


@pytest.fixture
def guest(served: tuple[FakeGuest, TcpEndpoint]) -> FakeGuest:
    served[0].instead = None
    return served[0]


@pytest.fixture
def client(guest: FakeGuest, served: tuple[FakeGuest, TcpEndpoint]) -> Iterator[ObserverClient]:
    client = ObserverClient(served[1], guest.token)
    yield client
    client.close()


def test_health_is_read(client: ObserverClient) -> None:
    health = client.health()
    assert health is not None
    assert (health.status, health.services.gateway, health.ssh_host_key) == ("ok", True, "ssh-ed25519 AAAA")


def test_desktop_is_read(client: ObserverClient) -> None:
    window = Window("T", "c.C", -5, 2, 30, 40, is_active=True)
    assert client.desktop() == DesktopState(1280, 800, 7, 8, (window,))


def test_the_accessibility_tree_is_read(client: ObserverClient) -> None:
    node = AccessibleNode(0, "push button", "Run", "", ("focused",), 1, 2, 3, 4, "Chromium", is_clickable=True)
    assert client.accessibility() == AccessibilityTree((node,), is_partial=True, seconds=0.5)


def test_screenshot_is_an_rgb_image(client: ObserverClient) -> None:
    image = client.screenshot()
    assert (image.mode, image.size, image.getpixel((0, 0))) == ("RGB", (6, 4), (1, 2, 3))


def test_rekeying_changes_the_guest_and_the_token_we_use(client: ObserverClient, guest: FakeGuest) -> None:
    entropy, token, old = os.urandom(64), "new-token-0123456789", guest.token
    assert client.rekey(token, 1000, entropy, "desktop-1", "0" * 32) == 1001
    (request,) = guest.rekeyed
    assert request.entropy == entropy
    assert (request.token, request.hostname, request.machine_id) == (token, "desktop-1", "0" * 32)
    assert client.desktop().width_px == 1280
    stale = ObserverClient(client._endpoint, old)
    with pytest.raises(TransportError, match="401"):
        stale.desktop()
    stale.close()


def test_a_request_costs_little(client: ObserverClient) -> None:
    client.health()
    spent = time.thread_time()
    for _ in range(50):
        client.health()
    assert (time.thread_time() - spent) / 50 < 0.002


def test_a_readiness_probe_tells_not_yet_from_wrong(served: tuple[FakeGuest, TcpEndpoint], guest: FakeGuest) -> None:
    absent = ObserverClient(TcpEndpoint("127.0.0.1", 1), "t")
    assert absent.health(Deadline.after(1)) is None
    wrong = ObserverClient(served[1], "wrong")
    with pytest.raises(TransportError, match="401"):
        wrong.health(Deadline.after(5))
    guest.instead = Response(status_code=503)
    busy = ObserverClient(served[1], guest.token)
    assert busy.health(Deadline.after(5)) is None
    for each in (wrong, busy):
        each.close()


def test_a_port_forward_that_takes_connections_and_drops_them_is_not_ready(peer: StartPeer) -> None:
    client = ObserverClient(peer(lambda connection: connection.shutdown(2)).endpoint, "t")
    assert client.health(Deadline.after(2)) is None
    client.close()


def test_a_guest_that_does_not_answer_yet_is_not_ready_at_the_deadline(peer: StartPeer) -> None:
    client = ObserverClient(peer(lambda connection: threading.Event().wait(3)).endpoint, "t")
    started = time.monotonic()
    assert client.health(Deadline.after(0.3)) is None
    assert time.monotonic() - started < 1
    client.close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'{"width_px": 1}',
        b'{"width_px":"1","height_px":1,"pointer":{"x":1,"y":1},"windows":[]}',
        b'{"width_px":1,"height_px":1,"pointer":{"x":1e400,"y":1},"windows":[]}',
        b'{"width_px":1,"height_px":1,"pointer":{"x":1,"y":1},"windows":[null]}',
        b"\xff\xfe",
        b"[" * 100_000,
        b" " * (2 << 20),
    ],
)
def test_an_answer_of_another_shape_is_a_transport_error(client: ObserverClient, guest: FakeGuest, body: bytes) -> None:
    guest.instead = Response(body, media_type="application/json")
    with pytest.raises(TransportError):
        client.desktop()


def tree(*nodes: object, **changes: object) -> bytes:
    return json.dumps({"nodes": nodes, "is_partial": False, "duration_s": 0.1, **changes}).encode()


def node(**changes: object) -> dict[str, object]:
    place = {"x": 0, "y": 0, "width_px": 1, "height_px": 1}
    said = {"depth": 0, "role": "r", "name": "n", "text": "", "states": [], "app": "a", "clickable": False}
    return {**said, **place, **changes}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        tree(None),
        tree(node(depth=-1)),
        tree(node(depth="0")),
        tree(node(x=-1)),
        tree(node(x=1 << 40)),
        tree(node(width_px=0)),
        tree(node(name="n" * 1001)),
        tree(node(text="t" * 4001)),
        tree(node(states=["s"] * 65)),
        tree(node(states=["s" * 41])),
        tree(node(clickable=1)),
        tree(*[node()] * 5001),
        tree(duration_s=-1),
        tree(duration_s=float("inf")),
        tree(is_partial="no"),
        b" " * (9 << 20),
    ],
)
def test_a_tree_beyond_all_bounds_is_a_transport_error(client: ObserverClient, guest: FakeGuest, body: bytes) -> None:
    guest.instead = Response(body, media_type="application/json")
    with pytest.raises(TransportError):
        client.accessibility()


def test_a_guest_without_an_accessibility_bus_is_a_transport_error(client: ObserverClient, guest: FakeGuest) -> None:
    guest.instead = Response(b'{"detail":"no bus"}', status_code=503)
    with pytest.raises(TransportError, match=r"503.*no bus"):
        client.accessibility()


def png_header(width_px: int, height_px: int) -> bytes:
    image = io.BytesIO()
    Image.new("RGB", (1, 1)).save(image, "PNG")
    raw = bytearray(image.getvalue())
    raw[16:24] = width_px.to_bytes(4, "big") + height_px.to_bytes(4, "big")
    return bytes(raw)


@pytest.mark.parametrize(
    "body",
    [b"", b"GIF89a", base64.b64decode("iVBORw0KGgo="), png_header(20_000, 20_000), png_header(0, 5), png_header(3, 3)],
    ids=["empty", "gif", "cut", "giant", "no width", "wrong checksum"],
)
def test_a_screenshot_that_is_no_sane_png_is_a_transport_error(
    client: ObserverClient, guest: FakeGuest, body: bytes
) -> None:
    guest.instead = Response(body, media_type="image/png")
    with pytest.raises(TransportError):
        client.screenshot()
