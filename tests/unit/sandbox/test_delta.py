"""Guards deltas of memory: a page that is left out, or read from the wrong place, is a guest's memory destroyed."""

import os
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.core.errors import SandboxError
from deskfork.sandbox.frozen.mapped_ram import PAGE, MappedRam, compare, count_pages, state_sha256, write_delta

COUNT = 64
MEMORY = COUNT * PAGE
BITMAP = 4096
PAGES = 1 << 16
TAIL = b"devices" * 100

contents = st.lists(st.sampled_from([0, 0, 1, 2]), min_size=COUNT, max_size=COUNT)


def page(value: int, number: int) -> bytes:
    return bytes(PAGE) if value == 0 else bytes([value]) * (PAGE - 1) + bytes([number])


def write_parent(path: Path, values: list[int]) -> bytes:
    path.write_bytes(b"".join(page(value, number) for number, value in enumerate(values)))
    return path.read_bytes()


def write_mapped(path: Path, values: list[int]) -> None:
    """Write a file as QEMU does: pages that are not zero in their places, holes for the others."""
    name = b"pc.ram"
    with path.open("wb") as stream:
        stream.write(b"QEVM" + bytes([len(name)]) + name + struct.pack(">Q", MEMORY))
        stream.write(struct.pack(">IQQQ", 1, PAGE, BITMAP, PAGES))
        bitmap = sum(1 << number for number, value in enumerate(values) if value)
        stream.seek(BITMAP)
        stream.write(bitmap.to_bytes(COUNT // 8, "little"))
        for number, value in enumerate(values):
            if value:
                stream.seek(PAGES + number * PAGE)
                stream.write(page(value, number))
        stream.seek(PAGES + MEMORY)
        stream.write(TAIL)


def as_qemu_reads(path: Path, memory: bytes) -> bytes:
    """Return guest memory after the pages that a file names were read over `memory`."""
    raw = path.read_bytes()
    bitmap = int.from_bytes(raw[BITMAP : BITMAP + COUNT // 8], "little")
    return b"".join(
        (raw[PAGES:] if bitmap >> number & 1 else memory)[number * PAGE : (number + 1) * PAGE]
        for number in range(COUNT)
    )


@given(contents, contents)
def test_a_delta_over_the_parents_memory_is_the_memory(before: list[int], after: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        parent, written, delta = (Path(folder) / name for name in ("parent", "written", "delta"))
        memory = write_parent(parent, before)
        write_mapped(written, after)
        layout = MappedRam.find(written, MEMORY)
        differing, present = compare(written, layout, parent)
        write_delta(written, layout, differing, delta)

        assert present == sum(value != 0 for value in after)
        assert count_pages(differing) == sum(one != other for one, other in zip(before, after, strict=True))
        assert as_qemu_reads(delta, memory) == b"".join(page(value, at) for at, value in enumerate(after))
        assert delta.stat().st_size == written.stat().st_size
        assert delta.read_bytes().endswith(TAIL)
        assert delta.read_bytes()[:BITMAP] == written.read_bytes()[:BITMAP]
        assert delta.stat().st_blocks <= written.stat().st_blocks


def test_pages_that_are_alike_take_no_room(tmp_path: Path) -> None:
    values = [1] * COUNT
    write_parent(tmp_path / "parent", values)
    write_mapped(tmp_path / "written", values)
    layout = MappedRam.find(tmp_path / "written", MEMORY)
    differing, _ = compare(tmp_path / "written", layout, tmp_path / "parent")
    write_delta(tmp_path / "written", layout, differing, tmp_path / "delta")
    assert count_pages(differing) == 0
    assert (tmp_path / "delta").stat().st_blocks * 512 < PAGES


@pytest.fixture
def delta(tmp_path: Path) -> Path:
    """A delta in which pages 3 and 4 are named, the latter a hole."""
    write_parent(tmp_path / "parent", [0, 0, 0, 1, 1] + [2] * (COUNT - 5))
    write_mapped(tmp_path / "written", [0, 0, 0, 2, 0] + [2] * (COUNT - 5))
    layout = MappedRam.find(tmp_path / "written", MEMORY)
    differing, _ = compare(tmp_path / "written", layout, tmp_path / "parent")
    assert differing == bytes([0b11000]) + bytes(COUNT // 8 - 1)
    write_delta(tmp_path / "written", layout, differing, tmp_path / "delta")
    return tmp_path / "delta"


@pytest.mark.parametrize("at", [0, 2, BITMAP, PAGES + 3 * PAGE + 9, PAGES + 4 * PAGE, PAGES + MEMORY + 3])
def test_the_hash_knows_every_byte_that_is_read(delta: Path, at: int) -> None:
    before = state_sha256(delta, MEMORY)
    with delta.open("r+b") as stream:
        byte = os.pread(stream.fileno(), 1, at)
        os.pwrite(stream.fileno(), bytes([byte[0] ^ 1]), at)
    assert state_sha256(delta, MEMORY) != before


def test_the_hash_does_not_know_where_holes_are(delta: Path, tmp_path: Path) -> None:
    (tmp_path / "dense").write_bytes(delta.read_bytes())
    assert state_sha256(tmp_path / "dense", MEMORY) == state_sha256(delta, MEMORY)


def test_a_file_of_another_machine_is_refused(delta: Path) -> None:
    with pytest.raises(SandboxError, match="mapped-ram"):
        state_sha256(delta, MEMORY * 2)
