"""The observer: tells the host what is on the desktop, and takes a new identity after a fork."""

import hmac
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import ValidationError

from deskfork_guest.accessibility.bus import BusUnavailable
from deskfork_guest.accessibility.look import AccessibilityReader
from deskfork_guest.desktop import DesktopReader, DesktopUnavailable
from deskfork_guest.identity import Identity, RekeyFailed
from deskfork_guest.schema import Desktop, Health, RekeyReply, RekeyRequest
from deskfork_guest.services import probe_services

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
MAX_BODY_BYTES = 64 * 1024
SSH_HOST_KEY = Path("/etc/ssh/ssh_host_ed25519_key.pub")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def make_api(identity: Identity, desktop: DesktopReader, accessibility: AccessibilityReader) -> FastAPI:
    """Make the part of the observer that has no hurry; whoever calls it has been let in already."""
    api = FastAPI(openapi_url=None)

    @api.get("/health")
    def health() -> Health:
        return Health(
            status="ok",
            boot_id=BOOT_ID.read_text(encoding="ascii").strip(),
            services=probe_services(desktop, identity.token),
            ssh_host_key=" ".join(SSH_HOST_KEY.read_text(encoding="ascii").split()[:2]),
            time_ns=time.time_ns(),
        )

    @api.get("/desktop")
    def read_desktop() -> Desktop:
        return desktop.read()

    @api.get("/screenshot")
    def screenshot() -> Response:
        return Response(desktop.screenshot_png(), media_type="image/png")

    @api.get("/accessibility")
    def look() -> Response:
        tree = accessibility.read(desktop.stack(), desktop.size())
        # Not FastAPI's own way, which would make a thousand nodes into dictionaries first.
        return Response(tree.model_dump_json(), media_type="application/json")

    @api.exception_handler(DesktopUnavailable)
    @api.exception_handler(BusUnavailable)
    def unavailable(_: Request, exc: Exception) -> JSONResponse:
        return JSONResponse({"detail": str(exc)}, status_code=503)

    return api


class Observer:
    """The ASGI application: lets in who has the token, answers /rekey itself, and leaves the rest to the API.

    /rekey bypasses FastAPI because it runs right after a fork, when every line costs translation time under emulation.
    """

    def __init__(self, identity: Identity, desktop: DesktopReader, accessibility: AccessibilityReader) -> None:
        """Serve `desktop` and `accessibility`, and let `identity` be replaced."""
        self._identity = identity
        self._api = make_api(identity, desktop, accessibility)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        if not self._is_allowed(scope):
            await _reply(send, 401, b'{"detail":"missing or wrong bearer token"}')
        elif scope["path"] == "/rekey" and scope["method"] == "POST":
            status, body = self._rekey(await _body(receive))
            await _reply(send, status, body)
        else:
            await self._api(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        expected = b"Bearer " + self._identity.token.encode("ascii")
        return any(
            name == b"authorization" and hmac.compare_digest(value, expected) for name, value in scope["headers"]
        )

    def _rekey(self, body: bytes) -> tuple[int, bytes]:
        try:
            request = RekeyRequest.model_validate_json(body)
            time_ns = self._identity.replace(request)
        except ValidationError as exc:
            return 422, exc.json(include_input=False, include_url=False).encode()
        except RekeyFailed as exc:
            return 503, json.dumps({"detail": str(exc)}).encode()
        return 200, RekeyReply(time_ns=time_ns).model_dump_json().encode()


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        # What is over the limit is cut off, and so fails to parse.
        if not message.get("more_body", False) or len(body) > MAX_BODY_BYTES:
            return bytes(body[:MAX_BODY_BYTES])


async def _reply(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
