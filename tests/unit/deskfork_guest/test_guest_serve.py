"""The observer's server stops when told to, although it never wakes up by itself."""

import signal
import socket
import subprocess
import sys
import time

SERVE = """
import sys, uvicorn
from deskfork_guest.serve import QuietServer
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})
QuietServer(uvicorn.Config(app, host="127.0.0.1", port=int(sys.argv[1]), lifespan="off", log_level="warning")).run()
"""


def test_it_serves_and_ends_on_sigterm() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-c", SERVE, str(port)], stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 30.0
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                    connection.sendall(b"GET / HTTP/1.1\r\nHost: guest\r\nConnection: close\r\n\r\n")
                    assert connection.recv(1024).startswith(b"HTTP/1.1 204")
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                assert server.poll() is None
                time.sleep(0.05)
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=10) == -signal.SIGTERM
    finally:
        server.kill()
        server.communicate()
