"""The child process behind the fake provider's `run_cell`: runs trusted Python cells, and can fork itself.

Started by file path with nothing but the standard library, so that a cell finds what it would find in a fresh kernel.
Speaks JSON lines over the socket whose descriptor is its first argument; standard output and error are the cell's own.
When the socket closes, the owner is dead: it kills what its cells started, removes the sandbox's folder and exits.
"""

import ast
import base64
import builtins
import io
import json
import linecache
import os
import queue
import shutil
import signal
import socket
import sys
import threading
import traceback
import types
import warnings
from pathlib import Path
from typing import Any

MARK = "DESKFORK_FAKE_SANDBOX"
"""Environment variable that marks every process started inside one fake sandbox."""
_MIMES = (("text/html", "_repr_html_"), ("image/png", "_repr_png_"), ("image/jpeg", "_repr_jpeg_"))

_commands: queue.SimpleQueue[tuple[dict[str, Any], list[int]]] = queue.SimpleQueue()
_wire: list[socket.socket] = []


def marked_processes(sandbox_id: str) -> list[int]:
    """Return the ids of all processes started inside the fake sandbox of that id."""
    needle = f"{MARK}={sandbox_id}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                if needle in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:  # gone meanwhile, or another user's
                continue
    return found


def kill_marked(sandbox_id: str) -> int:
    """Kill all processes started inside the fake sandbox of that id; return how many there were."""
    found = marked_processes(sandbox_id)
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(found)


def _send(message: dict[str, Any]) -> None:
    _wire[0].sendall(json.dumps(message).encode() + b"\n")


def _bundle(value: Any) -> dict[str, str]:
    shown = {"text/plain": repr(value)}
    for mime, method in _MIMES:
        made = getattr(value, method)() if hasattr(value, method) and not isinstance(value, type) else None
        if isinstance(made, bytes):
            shown[mime] = base64.b64encode(made).decode()
        elif isinstance(made, str):
            shown[mime] = made
    return shown


def _display(*values: Any, raw: bool = False, **_ignored: Any) -> None:
    for value in values:
        _send({"type": "display", "data": dict(value) if raw else _bundle(value)})


def _publish_display_data(data: dict[str, Any], *_args: Any, **_kwargs: Any) -> None:
    _display(data, raw=True)


class _Shown:
    """Stands in for the display classes of IPython that wrap finished content."""

    method = ""

    def __init__(self, data: Any) -> None:
        setattr(self, self.method, lambda: data)


def _ipython() -> dict[str, types.ModuleType]:
    """Return what cells may import of IPython, which need not be installed where the fake runs."""
    top, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    shown = {
        name: type(name, (_Shown,), {"method": method})
        for name, method in (("HTML", "_repr_html_"), ("Image", "_repr_png_"))
    }
    vars(display).update(display=_display, publish_display_data=_publish_display_data, **shown)
    # matplotlib asks an imported IPython for its version, and leaves anything from 8.24 on alone.
    vars(top).update(display=display, get_ipython=lambda: None, version_info=(8, 31, 0), __version__="8.31.0")
    return {"IPython": top, "IPython.display": display}


def _execute(code: str, number: int, scope: dict[str, Any]) -> None:
    name = f"<cell {number}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), scope)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), name, "eval"), scope)
        if value is not None and not code.rstrip().endswith(";"):
            scope["_"] = value
            _display(value)


def _described(error: BaseException) -> dict[str, str]:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace))
    return {"name": type(error).__name__, "value": str(error), "traceback": text}


def _run(code: str, number: int, scope: dict[str, Any]) -> None:
    error = None
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _execute(code, number, scope)
    except BaseException as raised:
        error = _described(raised)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    _send({"type": "done", "error": error})


def _settle(home: str, sandbox_id: str, base: str) -> None:
    """Make `home` the home folder, keeping the working directory's place in it."""
    old_home, cwd = os.environ["HOME"], Path.cwd()
    inside = cwd.relative_to(old_home) if cwd.is_relative_to(old_home) else Path("Desktop")
    target = Path(home) / inside
    os.chdir(target if target.is_dir() else Path(home) / "Desktop")
    os.environ.update({"HOME": home, MARK: sandbox_id, "TMPDIR": str(Path(home).parents[1] / "tmp")})
    threading.Thread(target=_listen, args=(_wire[0], sandbox_id, base), daemon=True).start()


def _fork(message: dict[str, Any], descriptors: list[int]) -> None:
    """Become two: the child takes over the socket and the output pipes that were handed in."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the listening thread is made anew in the child
        pid = os.fork()
    if pid:
        for descriptor in descriptors:
            os.close(descriptor)
        _send({"type": "forked", "pid": pid})
        return
    os.setsid()
    _wire[0].close()
    _wire[0] = socket.socket(fileno=descriptors[0])
    for target, descriptor in ((1, descriptors[1]), (2, descriptors[2])):
        os.dup2(descriptor, target)
        os.close(descriptor)
    _settle(message["home"], message["id"], message["base"])
    _send({"type": "ready"})


def _listen(wire: socket.socket, sandbox_id: str, base: str) -> None:
    """Queue commands until the owner is gone, then clean up after it."""
    pending = b""
    descriptors: list[int] = []
    while True:
        try:
            chunk, received, _flags, _address = socket.recv_fds(wire, 65536, 3)
        except OSError:
            chunk, received = b"", []
        if not chunk:
            kill_marked(sandbox_id)
            shutil.rmtree(base, ignore_errors=True)
            os.killpg(0, signal.SIGKILL)
        pending += chunk
        descriptors += received
        *lines, pending = pending.split(b"\n")
        for line in lines:
            _commands.put((json.loads(line), descriptors))
            descriptors = []


def main(descriptor: int, home: str, sandbox_id: str, base: str) -> None:
    """Serve until the owner goes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    module = types.ModuleType("__main__")
    sys.modules.update({"__main__": module, **_ipython()})
    sys.argv, sys.path[:0] = [""], [""]
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # keeps its place among the output of a cell's subprocesses
    vars(builtins).update(display=_display, get_ipython=lambda: None)
    _wire.append(socket.socket(fileno=descriptor))
    _settle(home, sandbox_id, base)
    _send({"type": "ready"})
    number = 0
    while True:
        message, descriptors = _commands.get()
        if message["op"] == "fork":
            _fork(message, descriptors)
        else:
            number += 1
            _run(message["code"], number, vars(module))


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:5])
