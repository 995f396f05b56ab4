"""Talks to the guest's own observer service; what it says is data, not truth."""

import base64
import io
from typing import Annotated, TypeVar

from PIL import Image, UnidentifiedImageError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from deskfork.core.errors import TransportError
from deskfork.core.types import AccessibilityTree, AccessibleNode, DesktopState, Window
from deskfork.core.waiting import Deadline
from deskfork.transport.endpoint import TcpEndpoint
from deskfork.transport.http import HttpClient
from deskfork.transport.screen import check_size

_MAX_JSON_BYTES = 1 << 20
_MAX_IMAGE_BYTES = 64 << 20
_MAX_TREE_BYTES = 8 << 20
_TIMEOUT_S = 10.0
_LOOK_TIMEOUT_S = 45.0
"""For what the guest grants its applications: at the first look a browser makes a tree of its page."""
_MAX_COORDINATE = 1 << 16


class _Wire(BaseModel):
    """A message of the guest's service; fields that a later guest adds are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


_M = TypeVar("_M", bound=_Wire)


class GuestServices(_Wire):
    """Which of the guest's services run."""

    x: bool
    session: bool
    gateway: bool
    sshd: bool


class GuestHealth(_Wire):
    """How the guest says it is."""

    status: str = Field(max_length=100)
    boot_id: str = Field(max_length=100)
    services: GuestServices
    ssh_host_key: str = Field(max_length=1000)
    """Public host key in OpenSSH's form: type, space, base64."""
    time_ns: int
    """The guest's clock, nanoseconds since the epoch."""


class _RekeyReply(_Wire):
    time_ns: int


class _Pointer(_Wire):
    x: int
    y: int


class _Window(_Wire):
    title: str
    wm_class: str
    x: int
    y: int
    width_px: int
    height_px: int
    active: bool


class _Desktop(_Wire):
    width_px: int
    height_px: int
    pointer: _Pointer
    windows: list[_Window] = Field(max_length=10_000)


class _Node(_Wire):
    depth: int = Field(ge=0, le=1000)
    role: str = Field(max_length=100)
    name: str = Field(max_length=1000)
    text: str = Field(max_length=4000)
    states: list[Annotated[str, Field(max_length=40)]] = Field(max_length=64)
    x: int = Field(ge=0, le=_MAX_COORDINATE)
    y: int = Field(ge=0, le=_MAX_COORDINATE)
    width_px: int = Field(ge=1, le=_MAX_COORDINATE)
    height_px: int = Field(ge=1, le=_MAX_COORDINATE)
    app: str = Field(max_length=1000)
    clickable: bool


class _Tree(_Wire):
    nodes: list[_Node] = Field(max_length=5000)
    is_partial: bool
    duration_s: float = Field(ge=0, allow_inf_nan=False)


class ObserverClient:
    """A kept-alive connection to one guest's observer."""

    def __init__(self, endpoint: TcpEndpoint, token: str) -> None:
        self._endpoint = endpoint
        self._token = token
        self._http = HttpClient(endpoint)

    def health(self, deadline: Deadline | None = None) -> GuestHealth | None:
        """Ask the guest how it is, as a readiness probe: one try, at most 10 s.

        Returns:
            What it said, or None while nothing answers there, or answers 5xx.

        Raises:
            TransportError: It answered, but not as agreed: a wrong token, say.
        """
        limit = Deadline.after(min(_TIMEOUT_S, deadline.remaining_s) if deadline else _TIMEOUT_S)
        try:
            status, body = self._call("GET", "/health", limit)
        except TransportError:
            # Nothing listens yet, or the hypervisor's port forward takes the connection and drops it.
            return None
        return None if status >= 500 else self._parsed(GuestHealth, "/health", status, body)

    def rekey(
        self,
        new_token: str,
        time_ns: int,
        entropy: bytes,
        hostname: str,
        machine_id: str,
        *,
        deadline: Deadline | None = None,
    ) -> int:
        """Make a fresh fork differ from its siblings, in one round trip; from then on only `new_token` is valid.

        Args:
            new_token: For the observer and the kernel gateway.
            time_ns: What the guest's clock is set to, nanoseconds since the epoch.
            entropy: 64 random bytes for the guest's random number generator.
            hostname: The guest's new name.
            machine_id: 32 hexadecimal digits.
            deadline: When to give up; in 10 s by default.

        Returns:
            The guest's clock after that, nanoseconds since the epoch.

        Raises:
            TransportError: The guest did not confirm; which token is valid is then unknown.
        """
        payload = {
            "token": new_token,
            "time_ns": time_ns,
            "entropy": base64.b64encode(entropy).decode(),
            "hostname": hostname,
            "machine_id": machine_id,
        }
        status, body = self._call("POST", "/rekey", deadline, payload)
        confirmed = self._parsed(_RekeyReply, "/rekey", status, body)
        self._token = new_token
        return confirmed.time_ns

    def desktop(self, deadline: Deadline | None = None) -> DesktopState:
        """Ask for screen size, pointer and windows.

        Raises:
            TransportError: The observer did not answer as agreed.
        """
        status, body = self._call("GET", "/desktop", deadline)
        seen = self._parsed(_Desktop, "/desktop", status, body)
        windows = (
            Window(w.title, w.wm_class, w.x, w.y, w.width_px, w.height_px, is_active=w.active) for w in seen.windows
        )
        return DesktopState(seen.width_px, seen.height_px, seen.pointer.x, seen.pointer.y, tuple(windows))

    def screenshot(self, deadline: Deadline | None = None) -> Image.Image:
        """Return the screen as the guest itself sees it; QMP's is the one to trust.

        Raises:
            TransportError: The observer did not answer as agreed, or with something that is no PNG of a sane size.
        """
        status, body = self._call("GET", "/screenshot", deadline, max_bytes=_MAX_IMAGE_BYTES)
        if status != 200:
            raise TransportError(f"observer {self._endpoint}/screenshot: {status} {body[:200]!r}")
        try:
            image = Image.open(io.BytesIO(body), formats=["PNG"])
            check_size(*image.size)
            return image.convert("RGB")
        except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as exc:
            raise TransportError(f"observer {self._endpoint}/screenshot: not a PNG image: {exc}") from exc

    def accessibility(self, deadline: Deadline | None = None) -> AccessibilityTree:
        """Ask for what applications tell assistive technology of what is on the screen.

        Args:
            deadline: When to give up; in 45 s by default, as browsers take their time at the first look.

        Raises:
            TransportError: The observer did not answer as agreed, or has no accessibility bus to ask.
        """
        limit = deadline or Deadline.after(_LOOK_TIMEOUT_S)
        status, body = self._call("GET", "/accessibility", limit, max_bytes=_MAX_TREE_BYTES)
        seen = self._parsed(_Tree, "/accessibility", status, body)
        nodes = (
            AccessibleNode(
                node.depth,
                node.role,
                node.name,
                node.text,
                tuple(node.states),
                node.x,
                node.y,
                node.width_px,
                node.height_px,
                node.app,
                is_clickable=node.clickable,
            )
            for node in seen.nodes
        )
        return AccessibilityTree(tuple(nodes), seen.is_partial, seen.duration_s)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _call(
        self,
        method: str,
        path: str,
        deadline: Deadline | None,
        payload: object = None,
        *,
        max_bytes: int = _MAX_JSON_BYTES,
    ) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self._token}"}
        limit = deadline or Deadline.after(_TIMEOUT_S)
        reply = self._http.request(method, path, headers, limit, payload=payload, max_bytes=max_bytes)
        return reply.status, reply.body

    def _parsed(self, model: type[_M], path: str, status: int, body: bytes) -> _M:
        if status != 200:
            raise TransportError(f"observer {self._endpoint}{path}: {status} {body[:200]!r}")
        try:
            return model.model_validate_json(body)
        except ValidationError as exc:
            raise TransportError(f"observer {self._endpoint}{path}: answer not as agreed: {exc}") from exc
