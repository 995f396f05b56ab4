"""JupyterLab's page in the guest's browser, as Chromium's debugging port shows it."""

import http.client
import json
import time
from collections.abc import Callable
from typing import Any

import websocket

LAB_URL = "http://localhost:8888/lab"
DEBUG_PORT = 1337
POLL_S = 0.25


class Unavailable(Exception):
    """What we asked for did not answer (yet), or not as hoped."""


def evaluate(expression: str, timeout_s: float, *, in_front: bool = True) -> Any:
    """Return the value of a JavaScript expression in JupyterLab's page, brought to the front before if `in_front`.

    Raises:
        Unavailable: There is no such page, or the expression threw, or did not come to an end.
    """
    address = _address_of_page()
    deadline = time.monotonic() + timeout_s
    try:
        connection = websocket.create_connection(address, timeout=timeout_s, suppress_origin=True)
        try:
            if in_front:
                _command(connection, 1, "Page.bringToFront", {}, deadline)
            request = {"expression": expression, "awaitPromise": True, "returnByValue": True}
            reply = _command(connection, 2, "Runtime.evaluate", request, deadline)
        finally:
            connection.close(timeout=0)
    except (OSError, ValueError, websocket.WebSocketException) as exc:
        raise Unavailable(f"the browser's page: {type(exc).__name__}: {exc}") from exc
    if problem := reply.get("exceptionDetails"):
        raise Unavailable(str(problem.get("exception", {}).get("description", problem.get("text"))).splitlines()[0])
    return reply.get("result", {}).get("value")


def wait_for(probe: Callable[[], None], deadline: float) -> None:
    """Call `probe` until it does not raise Unavailable.

    Raises:
        Unavailable: It still did at `deadline`.
    """
    while True:
        try:
            probe()
            return
        except Unavailable:
            if time.monotonic() > deadline:
                raise
        time.sleep(POLL_S)


def _address_of_page() -> str:
    connection = http.client.HTTPConnection("127.0.0.1", DEBUG_PORT, timeout=10)
    try:
        connection.request("GET", "/json/list")
        pages = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError) as exc:
        raise Unavailable(f"the browser's debugging port: {exc}") from exc
    finally:
        connection.close()
    for page in pages:
        if page.get("type") == "page" and page.get("url", "").startswith(LAB_URL):
            return str(page["webSocketDebuggerUrl"])
    raise Unavailable(f"the browser shows no page at {LAB_URL}")


def _command(
    connection: websocket.WebSocket, number: int, method: str, parameters: dict[str, Any], deadline: float
) -> dict[str, Any]:
    connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
    while True:
        connection.settimeout(max(0.01, deadline - time.monotonic()))
        reply = json.loads(connection.recv())
        if reply.get("id") == number:
            result: dict[str, Any] = reply.get("result", {})
            return result
