"""JupyterLab's page in the guest's browser: waiting until it is painted, and opening files in it.

Driven over Chromium's debugging port, through the application object that JupyterLab puts into its page when
`LabApp.expose_app_in_browser` is set. `serve` stays behind in a template, so that a fork, whose translation cache is
empty, need not start an interpreter for it.
"""

import http.client
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from deskfork_guest.page import LAB_URL, Unavailable, evaluate, wait_for

SERVER_PORT = 8888
SOCKET = Path("/run/user/1000/deskfork-lab")
REQUEST_BYTES = 8192
PEER_TIMEOUT_S = 10.0

# The launcher's cards come last; two animation frames later the browser has painted them.
IS_PAINTED = """
new Promise((resolve) => {
  const shown = (selector) => document.querySelector(selector)?.getBoundingClientRect().width > 0;
  if (window.jupyterapp && shown('.jp-LauncherCard') && shown('.jp-DirListing-content')
      && !document.querySelector('#jupyterlab-splash'))
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(true)));
  else resolve(false);
})
"""
# What a start of `jupyter lab FILE` leads to: the file in the main area's only tab, and a file browser that lists it.
# A document is attached before its file has come, and revealed afterwards. Until then nothing is shown: every frame
# that an emulated guest paints, of a spinner for one, costs it a tenth of a second. (What is not visible cannot get the
# focus, by which JupyterLab tells which document is in use: so it is only transparent.)
OPEN = """
(async (path) => {
  const app = window.jupyterapp;
  await app.restored;
  const veil = document.createElement('style');
  veil.textContent = '* {animation: none !important} body {opacity: 0 !important}';
  document.head.append(veil);
  try {
    const listed = app.commands.execute('filebrowser:refresh');
    if (path) {
      const widget = await app.commands.execute('docmanager:open', {path});
      if (!widget) throw new Error('JupyterLab cannot open ' + path);
      await widget.context.ready;
      await widget.revealed;
      for (const other of [...app.shell.widgets('main')])
        if (other.id.startsWith('launcher')) other.dispose();
    }
    await listed;
  } finally {
    veil.remove();
  }
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  return true;
})
"""
# Whether the page that was asked for a file shows it, two animation frames after the file has come.
SHOWS = """
(async (path) => {
  const app = window.jupyterapp;
  if (!app) return false;
  await app.restored;
  const widget = [...app.shell.widgets('main')].find((each) => each.context?.path === path);
  if (path && !widget) return false;
  await widget?.revealed;
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  return true;
})
"""
# Whether every open document is saved.
IS_SAVED = """
[...window.jupyterapp.shell.widgets('main')].every((each) => !each.context?.model?.dirty)
"""
# Closes a document and ends its kernel; what was remembered of it is forgotten.
CLOSE = """
(async (path) => {
  const app = window.jupyterapp;
  for (const widget of [...app.shell.widgets('main')]) {
    if (widget.context?.path !== path) continue;
    const session = widget.context.sessionContext;
    await session?.ready;
    await session?.shutdown();
    widget.dispose();
  }
  await app.serviceManager.contents.delete(path);
  await app.commands.execute('docmanager:clear-recents');
  await app.commands.execute('filebrowser:refresh');
  return true;
})
"""


def require_painted() -> None:
    """Ask whether JupyterLab's page is on the screen.

    Raises:
        Unavailable: Not yet.
    """
    # A page that is brought to the front before it has begun to load has been seen not to load at all.
    if evaluate("Boolean(window.jupyterapp)", 30.0, in_front=False) is not True:
        raise Unavailable("the page has not loaded yet")
    if evaluate(IS_PAINTED, 30.0) is not True:
        raise Unavailable("the page is there, but the launcher or the file browser is not")


def show(path: str, timeout_s: float) -> None:
    """Bring JupyterLab's page up to date, with the file at `path` (below its folder) open in it if there is one.

    Raises:
        Unavailable: It did not come to be painted within `timeout_s`.
    """
    evaluate(f"{OPEN}({json.dumps(path)})", timeout_s)


def load(path: str, timeout_s: float) -> None:
    """Load the page anew, as soon as there is a server, with the file at `path` open in it if there is one.

    Raises:
        Unavailable: It did not come to be painted within `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    wait_for(require_server, deadline)
    url = f"{LAB_URL}/tree/{quote(path)}" if path else LAB_URL
    evaluate(f"window.location.assign({json.dumps(url)})", timeout_s)

    def require_shown() -> None:
        if evaluate(f"{SHOWS}({json.dumps(path)})", max(0.01, deadline - time.monotonic())) is not True:
            raise Unavailable(f"the page at {url} does not show its file")

    wait_for(require_shown, deadline)


def wait_saved(path: str, timeout_s: float) -> None:
    """Wait until what is being saved is saved; documents that nobody saves are not waited for longer than `timeout_s`.

    Raises:
        Unavailable: Some document still has changes that are not saved.
    """

    def require_saved() -> None:
        if evaluate(IS_SAVED, timeout_s) is not True:
            raise Unavailable("a document has changes that are not saved")

    wait_for(require_saved, time.monotonic() + timeout_s)


def require_server() -> None:
    """Ask JupyterLab's server whether it serves.

    Raises:
        Unavailable: Not yet.
    """
    connection = http.client.HTTPConnection("127.0.0.1", SERVER_PORT, timeout=10)
    try:
        connection.request("GET", "/api")
        if connection.getresponse().status != http.HTTPStatus.OK:
            raise Unavailable("JupyterLab's server refuses to say what it is")
    except (OSError, http.client.HTTPException) as exc:
        raise Unavailable(f"JupyterLab's server: {exc}") from exc
    finally:
        connection.close()


def close(path: str, timeout_s: float) -> None:
    """Close the document at `path`, end its kernel and delete the file.

    Raises:
        Unavailable: That did not happen within `timeout_s`.
    """
    evaluate(f"{CLOSE}({json.dumps(path)})", timeout_s)


def listen() -> socket.socket:
    """Return the socket on which show-in-jupyterlab asks."""
    SOCKET.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(SOCKET))
    SOCKET.chmod(0o600)
    listener.listen(4)
    return listener


def serve(listener: socket.socket) -> None:
    """Do what is asked for on `listener`, one request after the other, without end.

    A request is three lines: seconds, path, and one of ACTIONS. The answer is `ok`, or what went wrong.
    """
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PEER_TIMEOUT_S)
            answer_request(connection)


def answer_request(connection: socket.socket) -> None:
    """Read one request from `connection`, obey it and answer."""
    try:
        lines = connection.makefile("r", encoding="utf-8", errors="surrogateescape")
        timeout_s, path, action = (lines.readline(REQUEST_BYTES).rstrip("\n") for _ in range(3))
        ACTIONS[action](path, float(timeout_s))
        reply = "ok"
    except (Unavailable, OSError, ValueError, KeyError) as exc:
        reply = " ".join(str(exc).split()) or type(exc).__name__
    try:
        connection.sendall(reply.encode("utf-8", "replace"))
    except OSError:
        # Whoever asked has gone.
        return


ACTIONS: dict[str, Callable[[str, float], None]] = {"show": show, "load": load, "saved": wait_saved}
