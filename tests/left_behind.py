"""What there is of a sandbox on this machine, found without asking deskfork."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from deskfork.core.config import cache_dir


def left_of(sandbox_id: str) -> list[str]:
    """Return all processes, folders and containers of the sandbox with that id."""
    parents = (cache_dir() / "sandboxes", Path(tempfile.gettempdir()))
    folders = [str(path) for parent in parents for path in parent.glob("*") if sandbox_id in path.name]
    return _processes(sandbox_id) + folders + _containers(sandbox_id)


def _processes(text: str) -> list[str]:
    """Return the command lines of all processes with `text` in them, or in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
        except OSError:
            continue
        if text.encode() in command + environment:
            found.append(f"process {entry.name}: {command[:200]!r}")
    return found


def _containers(sandbox_id: str) -> list[str]:
    if shutil.which("docker") is None:
        return []
    command = [
        "docker",
        "ps",
        "-a",
        "--filter",
        f"label=deskfork.sandbox={sandbox_id}",
        "--format",
        "container {{.ID}}",
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout.splitlines()
