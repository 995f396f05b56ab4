"""The files of frozen machines: their sizes and hashes, and copies that keep holes."""

import hashlib
import os
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import IO

from deskfork.core.config import StrictModel

_BLOCK = 1 << 20


class FrozenFile(StrictModel):
    """One file of a frozen machine."""

    size: int
    sha256: str = ""
    """Empty where nothing compares it."""


def describe_files(directory: Path, names: Sequence[str], *, hashed: Collection[str]) -> dict[str, FrozenFile]:
    """Return size, and for the names in `hashed` the hash, of files of a machine that has just been frozen."""
    return {
        name: FrozenFile(
            size=(directory / name).stat().st_size, sha256=file_sha256(directory / name) if name in hashed else ""
        )
        for name in names
    }


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a file without writing its holes.

    Raises:
        OSError: No space is left, or `source` cannot be read.
    """
    # Unbuffered: the search for holes moves the place from which a buffer would be filled.
    with source.open("rb", buffering=0) as reader, target.open("wb", buffering=0) as writer:
        size = os.fstat(reader.fileno()).st_size
        os.ftruncate(writer.fileno(), size)
        copy_data(reader, writer, 0, size)


def copy_data(reader: IO[bytes], writer: IO[bytes], start: int, end: int) -> None:
    """Copy what lies between two offsets to the same place, its holes left out.

    Raises:
        OSError: No space is left, or the source cannot be read.
    """
    source, target = reader.fileno(), writer.fileno()
    while start < end:
        try:
            start = os.lseek(source, start, os.SEEK_DATA)
        except OSError:
            # Nothing but a hole up to the end of the file.
            return
        stop = min(end, os.lseek(source, start, os.SEEK_HOLE))
        while start < stop:
            block = os.pread(source, min(_BLOCK, stop - start), start)
            os.pwrite(target, block, start)
            start += len(block)


def occupied_bytes(directory: Path) -> int:
    """Return what the files of a folder occupy on disk.

    Raises:
        OSError: A file vanished meanwhile.
    """
    return sum(path.lstat().st_blocks * 512 for path in directory.iterdir())


def remove_folder(directory: Path) -> None:
    """Remove a frozen machine's folder."""
    shutil.rmtree(directory, ignore_errors=True)
