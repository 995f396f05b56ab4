"""Seals on folders of large files: whether they are still what they were when finished."""

import hashlib
import os
from pathlib import Path

from pydantic import ValidationError

from deskfork.core.atomic import write_atomic
from deskfork.core.config import StrictModel

SEAL_NAME = "seal.json"
BLOCK_BYTES = 1024 * 1024
_ZEROS = bytes(BLOCK_BYTES)


class FileSeal(StrictModel):
    """What a file was when its folder was sealed."""

    size_bytes: int
    digest: str
    """See `file_digest`."""


class Seal(StrictModel):
    """Every file of a folder, by its path in it."""

    files: dict[str, FileSeal]

    @property
    def digest(self) -> str:
        """One hash for all contents."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return a SHA-256 over the size and all blocks that are not zero, each with its offset.

    The holes of a sparse file cost nothing, and a copy that fills them has the same digest.
    """
    digest = hashlib.sha256(path.stat().st_size.to_bytes(8, "big"))
    with path.open("rb", buffering=0) as stream:
        offset = 0
        while True:
            try:
                start = os.lseek(stream.fileno(), offset, os.SEEK_DATA)
            except OSError:  # ENXIO: nothing but a hole follows
                return digest.hexdigest()
            offset = max(offset, start - start % BLOCK_BYTES)
            os.lseek(stream.fileno(), offset, os.SEEK_SET)
            block = stream.read(BLOCK_BYTES)
            if not block:
                return digest.hexdigest()
            if block != _ZEROS[: len(block)]:
                digest.update(offset.to_bytes(8, "big") + block)
            offset += len(block)


def seal(folder: Path) -> Seal:
    """Record size and digest of every file in `folder`."""
    made = Seal(
        files={
            str(path.relative_to(folder)): FileSeal(size_bytes=path.stat().st_size, digest=file_digest(path))
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != SEAL_NAME
        }
    )
    write_atomic(folder / SEAL_NAME, made.model_dump_json(indent=1) + "\n")
    return made


def read_seal(folder: Path) -> Seal | None:
    """Return the seal of `folder`, or None if it has none that can be read."""
    try:
        return Seal.model_validate_json((folder / SEAL_NAME).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def damage(folder: Path, sealed: Seal, *, check_contents: bool) -> str | None:
    """Say what in `folder` is not as it was sealed, or None.

    Args:
        folder: Where the files lie.
        sealed: What they were.
        check_contents: Whether to read them, at about a second a gigabyte, or to compare sizes only.
    """
    for name, expected in sealed.files.items():
        path = folder / name
        if not path.is_file():
            return f"{path} is missing"
        if path.stat().st_size != expected.size_bytes:
            return f"{path} has {path.stat().st_size} bytes, should have {expected.size_bytes}"
        if check_contents and file_digest(path) != expected.digest:
            return f"{path} has other contents than it was built with"
    return None


def is_intact(folder: Path) -> bool:
    """Whether all files of `folder` have the contents that they were sealed with."""
    sealed = read_seal(folder)
    return sealed is not None and damage(folder, sealed, check_contents=True) is None
