"""Writing files so that a reader, or a crash, never meets half of one."""

import os
import secrets
from pathlib import Path


def write_atomic(path: Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """Write `content` to `path` in one step, replacing what was there.

    Raises:
        OSError: The disk is full or the folder is missing; `path` is then as it was.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    raw = content.encode() if isinstance(content, str) else content
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
