"""Guards the reading of QEMU's mapped-ram file: pages taken from a wrong place are a guest's memory destroyed."""

import struct
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.core.errors import SandboxError
from deskfork.sandbox.frozen.mapped_ram import keep_out_of_bitmap

PAGE = 4096
MEMORY = 1 << 16
BITMAP_BYTES = MEMORY // PAGE // 8


@dataclass(frozen=True)
class Layout:
    """A mapped-ram file with one block of guest memory, laid out by hand."""

    before: bytes = b"QEVM\0\0\0\3" + b"\1\2\3" * 50
    name: bytes = b"pc.ram"
    size: int = MEMORY
    version: int = 1
    page: int = PAGE
    bitmap: int = 8192
    pages: int = 1 << 16
    length: int = (1 << 16) + MEMORY + 999

    def content(self) -> bytes:
        block = bytes([len(self.name)]) + self.name + struct.pack(">Q", self.size)
        head = self.before + block + struct.pack(">IQQQ", self.version, self.page, self.bitmap, self.pages)
        return (head + b"\xff" * max(0, self.length - len(head)))[: self.length]


def leave(content: bytes) -> tuple[int, bytes]:
    """Return where the pages begin, and the file afterwards."""
    with tempfile.NamedTemporaryFile() as file:
        path = Path(file.name)
        path.write_bytes(content)
        try:
            return keep_out_of_bitmap(path, MEMORY), path.read_bytes()
        except SandboxError:
            assert path.read_bytes() == content, "it was refused, but changed"
            raise


@given(st.binary(max_size=2000), st.integers(4096, 30_000), st.integers(10, 30), st.integers(0, 5000))
def test_only_the_list_of_pages_is_emptied(before: bytes, bitmap: int, first_page: int, after: int) -> None:
    pages = first_page * PAGE
    layout = Layout(before=before, bitmap=bitmap, pages=pages, length=pages + MEMORY + after)
    content = layout.content()
    offset, changed = leave(content)
    assert offset == pages
    assert changed[bitmap : bitmap + BITMAP_BYTES] == bytes(BITMAP_BYTES)
    assert changed[:bitmap] == content[:bitmap]
    assert changed[bitmap + BITMAP_BYTES :] == content[bitmap + BITMAP_BYTES :]


SOUND = Layout()


@pytest.mark.parametrize(
    "broken",
    [
        replace(SOUND, name=b"vga.vram"),
        replace(SOUND, size=MEMORY * 2),
        replace(SOUND, size=0),
        replace(SOUND, version=2),
        replace(SOUND, version=0),
        replace(SOUND, page=2 * PAGE),
        replace(SOUND, page=0),
        replace(SOUND, pages=SOUND.pages + 1),
        replace(SOUND, pages=0),
        replace(SOUND, bitmap=0),
        replace(SOUND, bitmap=len(SOUND.before)),
        replace(SOUND, bitmap=SOUND.pages),
        replace(SOUND, bitmap=SOUND.pages - BITMAP_BYTES + 1),
        replace(SOUND, bitmap=(1 << 64) - 1),
        replace(SOUND, pages=((1 << 64) - 1) // PAGE * PAGE),
        replace(SOUND, length=SOUND.pages),
        replace(SOUND, length=SOUND.pages + MEMORY - 1),
        replace(SOUND, length=len(SOUND.before) + 20),
        replace(SOUND, before=bytes(1 << 20)),
        replace(SOUND, length=0),
    ],
    ids=lambda layout: ",".join(f"{name}" for name, value in vars(layout).items() if value != getattr(SOUND, name)),
)
def test_a_file_laid_out_otherwise_is_refused_and_left_as_it_is(broken: Layout) -> None:
    leave(SOUND.content())
    with pytest.raises(SandboxError, match="mapped-ram"):
        leave(broken.content())


@given(st.binary(max_size=400))
def test_garbage_is_refused(content: bytes) -> None:
    with pytest.raises(SandboxError, match="mapped-ram"):
        leave(content)


@given(st.integers(0, len(SOUND.before) + 43))
def test_a_file_cut_off_in_its_head_is_refused(length: int) -> None:
    with pytest.raises(SandboxError, match="mapped-ram"):
        leave(SOUND.content()[:length])
