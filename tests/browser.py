"""A real browser, Chromium, driven over its debugging port."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websocket import WebSocket, create_connection

from deskfork.core.waiting import Deadline, wait_until

SOON_S = 120.0
# Noted before any script of the page's own runs.
_NOTE_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) => violations.push(`${e.violatedDirective} ${e.blockedURI}`));
"""
_CODES = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "End": 35, "Home": 36}


def find_chromium() -> str | None:
    """Return the program, None where there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Page:
    """One page, and what it complained of."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.complaints: list[str] = []
        """Uncaught exceptions, and errors that the browser logs."""
        self.dialogs: list[str] = []
        """What alert() and its like would have said."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=_NOTE_VIOLATIONS)

    def call(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        match message.get("method"):
            case "Runtime.exceptionThrown":
                details = message["params"]["exceptionDetails"]
                self.complaints.append(details.get("exception", {}).get("description") or details["text"])
            case "Log.entryAdded":
                entry = message["params"]["entry"]
                # A page may be open for a moment longer than its server.
                if entry["level"] == "error" and "net::ERR_" not in entry["text"]:
                    self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
            case "Page.javascriptDialogOpening":
                self.dialogs.append(message["params"]["message"])
                number = next(self._numbers)
                accept = {"id": number, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
                self._socket.send(json.dumps(accept))

    def run(self, script: str) -> Any:
        """Return what a JavaScript expression gives, a promise's value for a promise."""
        told = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def open(self, url: str, ready: str = "true") -> None:
        """Go to a page and wait until an expression holds in it."""
        self.call("Page.navigate", url=url)
        self.until(f"document.readyState === 'complete' && ({ready})")

    def until(self, script: str) -> None:
        """Wait until an expression holds."""
        # A page that is being left has no answer.
        held = wait_until(lambda: self._holds(script), Deadline.after(SOON_S), interval_s=0.05)
        assert held, f"never so: {script}; complaints: {self.complaints}; {self.run('document.body.innerText')[:2000]}"

    def _holds(self, script: str) -> bool:
        told = self.call("Runtime.evaluate", expression=f"Boolean({script})", returnByValue=True)
        return bool(told["result"].get("value")) and "exceptionDetails" not in told

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            named = {"key": key, "windowsVirtualKeyCode": _CODES.get(key, ord(key[0].upper()))}
            text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
            self.call("Input.dispatchKeyEvent", type="keyDown", **named, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def text(self, selector: str) -> str:
        """Return what an element shows."""
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def resize(self, width: int, height: int, *, is_dark: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, target: Path) -> None:
        """Write a PNG of what is seen."""
        target.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


@contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """Start the browser with a fresh profile in `folder`, and yield its page."""
    program = find_chromium()
    assert program is not None
    profile = folder / "chromium"
    command = [program, "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"]
    command += ["--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,800"]
    command += ["--disable-background-networking", "--disable-component-update", "--remote-allow-origins=*"]
    if os.geteuid() == 0:
        command.append("--no-sandbox")  # it refuses to have one as root
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            told = profile / "DevToolsActivePort"
            assert wait_until(lambda: told.exists() and told.read_text().count("\n"), Deadline.after(SOON_S))
            port = int(told.read_text().split("\n")[0])
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=SOON_S) as answer:
                target = next(found for found in json.load(answer) if found["type"] == "page")
            socket = create_connection(target["webSocketDebuggerUrl"], timeout=SOON_S)
            try:
                yield Page(socket)
            finally:
                socket.close()
        finally:
            process.kill()
