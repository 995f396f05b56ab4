"""QEMU's `mapped-ram` file: every page of guest memory at a place of its own, and a bitmap of those that are there.

QEMU reads only the pages that the bitmap names, and leaves the others as the memory's backing has them. So one whose
bitmap names no page of guest memory goes with that file itself as backing (`keep_out_of_bitmap`), and one that names
what differs from another machine's memory goes with that memory as backing (`write_delta`).

Source: QEMU 10.0, docs/devel/migration/mapped-ram.rst, struct MappedRamHeader, `read_ramblock_mapped_ram` (which reads
runs of named pages; later versions set the others to zero for `loadvm` alone, not for an incoming migration).
"""

import hashlib
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from deskfork.core.errors import SandboxError
from deskfork.sandbox.frozen.files import copy_data

PAGE = 4096
_RAM_NAME = b"pc.ram"
# After a block's name and size come version, page size, offset of the bitmap, offset of the pages; all big-endian.
_HEADER = struct.Struct(">IQQQ")
_HEAD_BYTES = 1 << 20
_CHUNK = 1 << 20
_BITS = tuple(f"{byte:08b}"[::-1] for byte in range(256))


@dataclass(frozen=True)
class MappedRam:
    """Where guest memory lies in a mapped-ram file."""

    bitmap: int
    """Offset of the bitmap, a bit for each page, lowest first."""
    pages: int
    """Offset of the first page."""
    memory_bytes: int

    @classmethod
    def find(cls, path: Path, memory_bytes: int) -> Self:
        """Read a file's header.

        Raises:
            OSError: The file cannot be read.
            SandboxError: The file is not laid out as this version of QEMU lays it out.
        """
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
            size = stream.seek(0, os.SEEK_END)
        entry = bytes([len(_RAM_NAME)]) + _RAM_NAME + struct.pack(">Q", memory_bytes)
        at = head.find(entry)
        if at < 0 or at + len(entry) + _HEADER.size > len(head):
            raise SandboxError(f"{path}: QEMU's mapped-ram file names no block of {memory_bytes} bytes of memory")
        version, page, bitmap, pages = _HEADER.unpack_from(head, at + len(entry))
        found = cls(bitmap, pages, memory_bytes)
        # Header, bitmap and pages follow one another in a file that holds them all.
        places = (at + len(entry) + _HEADER.size, bitmap, bitmap + found.bitmap_bytes, pages, found.end)
        is_sound = version == 1 and page == PAGE and pages % PAGE == 0
        if not is_sound or list(places) != sorted(places) or places[-1] > size:
            raise SandboxError(f"{path}: QEMU's mapped-ram header {version, page, bitmap, pages} is not understood")
        return found

    @property
    def bitmap_bytes(self) -> int:
        """Length of the bitmap."""
        return self.memory_bytes // PAGE // 8

    @property
    def end(self) -> int:
        """Offset of what follows the pages: video memory, and the devices' state."""
        return self.pages + self.memory_bytes

    def read_bitmap(self, stream: IO[bytes]) -> bytes:
        """Return the bitmap of the pages that are there."""
        return os.pread(stream.fileno(), self.bitmap_bytes, self.bitmap)


def count_pages(bitmap: bytes | bytearray) -> int:
    """Return how many pages a bitmap names."""
    return int.from_bytes(bitmap).bit_count()


def keep_out_of_bitmap(path: Path, memory_bytes: int) -> int:
    """Strike guest memory's pages out of the list of what is to be read, and return where they begin.

    Raises:
        OSError: The file cannot be written.
        SandboxError: The file is not laid out as this version of QEMU lays it out.
    """
    layout = MappedRam.find(path, memory_bytes)
    with path.open("r+b") as stream:
        stream.seek(layout.bitmap)
        stream.write(bytes(layout.bitmap_bytes))
    return layout.pages


def compare(written: Path, layout: MappedRam, parent: Path) -> tuple[bytes, int]:
    """Find the pages of a mapped-ram file that differ from the parent's memory.

    Args:
        written: As QEMU wrote it.
        layout: Its layout.
        parent: A template's memory, byte for byte.

    Returns:
        The bitmap of the pages that differ, and how many pages are not zero in `written`.
    """
    differing = bytearray(layout.bitmap_bytes)
    with written.open("rb", buffering=0) as one, parent.open("rb", buffering=0) as other:
        present = layout.read_bitmap(one)
        for start in range(0, layout.memory_bytes, _CHUNK):
            length = min(_CHUNK, layout.memory_bytes - start)
            ours = os.pread(one.fileno(), length, layout.pages + start)
            theirs = os.pread(other.fileno(), length, start)
            if ours == theirs:
                continue
            for at in range(0, len(ours), PAGE):
                if ours[at : at + PAGE] != theirs[at : at + PAGE]:
                    page = (start + at) // PAGE
                    differing[page // 8] |= 1 << page % 8
    return bytes(differing), count_pages(present)


def write_delta(written: Path, layout: MappedRam, bitmap: bytes, target: Path) -> None:
    """Write a mapped-ram file with no other pages of guest memory than those that `bitmap` names.

    One of zeros is named as well, where the parent has something else, and read from a hole.

    Raises:
        OSError: No space is left, or `written` cannot be read.
    """
    with written.open("rb", buffering=0) as source, target.open("wb", buffering=0) as sink:
        size = os.fstat(source.fileno()).st_size
        os.ftruncate(sink.fileno(), size)
        copy_data(source, sink, 0, layout.pages)
        for start, end in _runs(bitmap):
            copy_data(source, sink, layout.pages + start * PAGE, layout.pages + end * PAGE)
        copy_data(source, sink, layout.end, size)
        os.pwrite(sink.fileno(), bitmap, layout.bitmap)


def state_sha256(path: Path, memory_bytes: int) -> str:
    """Return a hash over all of a mapped-ram file that QEMU reads: everything but the pages that it does not name.

    Raises:
        OSError: The file cannot be read.
        SandboxError: The file is not laid out as this version of QEMU lays it out.
    """
    layout = MappedRam.find(path, memory_bytes)
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as stream:
        named = _runs(layout.read_bitmap(stream))
        pages = [(layout.pages + start * PAGE, layout.pages + end * PAGE) for start, end in named]
        for start, end in [(0, layout.pages), *pages, (layout.end, os.fstat(stream.fileno()).st_size)]:
            for at in range(start, end, _CHUNK):
                digest.update(os.pread(stream.fileno(), min(_CHUNK, end - at), at))
    return digest.hexdigest()


def _runs(bitmap: bytes) -> Iterator[tuple[int, int]]:
    """Yield the runs of pages that a bitmap names: the first of each, and the one after its last."""
    for run in re.finditer("1+", "".join(_BITS[byte] for byte in bitmap)):
        yield run.span()
