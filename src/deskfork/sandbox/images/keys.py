"""What an image is built from, as hashes."""

import hashlib
import os
from pathlib import Path


def key_of(*parts: str | bytes) -> str:
    """Return the hash of `parts`, told apart from any other split of the same bytes."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()


def tree_key(root: Path) -> str:
    """Return the hash of all files and links below `root`: names, contents, and whether they are executable."""
    parts: list[bytes] = []
    for path in sorted(root.rglob("*")):
        if "__pycache__" in path.parts or (path.is_dir() and not path.is_symlink()):
            continue
        parts.append(str(path.relative_to(root)).encode())
        if path.is_symlink():
            parts += [b"link", os.fsencode(path.readlink())]
        else:
            parts += [b"executable" if os.access(path, os.X_OK) else b"file", path.read_bytes()]
    return key_of(*parts)
