"""An OpenAI-compatible server that answers what a test tells it to, and replies to hand it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


@dataclass(frozen=True)
class Reply:
    """One HTTP answer; with `drip_s` each byte of the body is sent by itself, so long after the one before."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    drip_s: float = 0.0
    length: int | None = None
    """The length that is promised, if not the body's own; the body is then sent over and over."""


def says(text: str | None, *, usage: Any = USAGE, finish: str = "stop", **message: Any) -> Reply:
    """Return a chat completion with this text; further fields go into its message."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
    return completion([choice], usage=usage)


def completion(choices: Any, *, usage: Any = USAGE) -> Reply:
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": choices}
    return Reply(body=json.dumps(body if usage is None else {**body, "usage": usage}).encode())


def calls(*named: tuple[str, Any], text: str | None = None, **more: Any) -> Reply:
    """Return a chat completion with tool calls; arguments that are no text are written as JSON."""
    made = [
        {
            "id": f"id{number}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for number, (name, given) in enumerate(named)
    ]
    return says(text, finish="tool_calls", tool_calls=made, **more)


def fails(status: int, message: str = "no", code: str | None = None, **headers: str) -> Reply:
    return Reply(status, headers, json.dumps({"error": {"message": message, "code": code}}).encode())


def code(text: str) -> Reply:
    return says(f"Thought: now.\n<code>\n{text}\n</code>")


@dataclass
class Api:
    """A server that gives the replies it was handed, the last one for ever."""

    url: str = ""
    replies: list[Reply] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)
    is_slow: bool = False

    def answer(self, request: dict[str, Any]) -> Reply:
        self.requests.append(request)
        if self.is_slow:
            self.hold.wait(20)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@contextmanager
def serving() -> Iterator[Api]:
    """Serve until the block ends."""
    served = Api()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = served.answer({"path": self.path, **request})
            try:
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(reply.length or len(reply.body)))
                self.end_headers()
                self._send(reply)
            except (BrokenPipeError, ConnectionResetError):
                pass

        def _send(self, reply: Reply) -> None:
            if reply.drip_s:
                for byte in reply.body:
                    self.wfile.write(bytes([byte]))
                    if served.hold.wait(reply.drip_s):
                        return
            else:
                for _ in range(max(1, (reply.length or 0) // max(1, len(reply.body)))):
                    self.wfile.write(reply.body)

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.hold.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
