"""Guards frozen machines: a damaged one must be refused in one sentence, and a copied disk must be the same disk."""

import os
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.core.errors import SandboxError
from deskfork.sandbox.frozen.files import copy_sparse, describe_files
from deskfork.sandbox.frozen.frozen import MANIFEST_NAME, Frozen, read_frozen, write_manifest
from deskfork.sandbox.frozen.manifest import FrozenManifest
from deskfork.sandbox.machine import MachineSpec

NAMES = ("memory", "state", "disk.qcow2", "overlay.qcow2")
BLOCK = 4096


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """The folder of a template whose files are small, but undamaged."""
    directory = tmp_path / "desktop-0123"
    directory.mkdir()
    for name in NAMES:
        (directory / name).write_bytes(name.encode() * 100)
    (directory / "id_ed25519").write_bytes(b"key")
    manifest = FrozenManifest(
        name="desktop",
        digest="d",
        image_digest="i",
        image_directory=tmp_path / "image",
        qemu_version="10.0.2",
        machine=MachineSpec(),
        token="t",
        kernel_id="k",
        ssh_host_key="ssh-ed25519 AAAA",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        files=describe_files(directory, NAMES, hashed=NAMES[:3]),
    )
    write_manifest(directory, manifest)
    return directory


def replace(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


def edit_manifest(directory: Path, **changes: object) -> None:
    manifest = read_frozen(directory).manifest.model_copy(update=changes)
    replace(directory / MANIFEST_NAME, manifest.model_dump_json().encode())


def test_an_undamaged_template_is_read_as_it_was_written(template: Path) -> None:
    frozen = read_frozen(template)
    frozen.check()
    assert frozen.manifest.files.keys() == set(NAMES)
    assert (frozen.memory, frozen.state) == (template / "memory", template / "state")
    assert frozen.lineage() == [template, frozen.manifest.image_directory]
    assert {path.stat().st_mode & 0o777 for path in template.iterdir()} == {0o400}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        lambda path: replace(path, b""),
        lambda path: replace(path, path.read_bytes()[:-1]),
        lambda path: replace(path, path.read_bytes() + b"x"),
    ],
    ids=["missing", "empty", "short", "long"],
)
def test_a_file_of_another_size_is_named_and_the_way_out_too(
    template: Path, name: str, damage: Callable[[Path], None]
) -> None:
    damage(template / name)
    with pytest.raises(SandboxError, match=f"{name}.*deskfork template build desktop --force"):
        read_frozen(template).check()


def test_device_state_with_one_bit_turned_is_refused(template: Path) -> None:
    content = bytearray((template / "state").read_bytes())
    content[7] ^= 1
    replace(template / "state", bytes(content))
    with pytest.raises(SandboxError, match=r"device state.*deskfork template build desktop --force"):
        read_frozen(template).check()


@pytest.mark.parametrize("left", [(), ("memory",), ("memory", "state", "disk.qcow2")])
def test_a_manifest_that_does_not_speak_of_every_file_is_refused(template: Path, left: tuple[str, ...]) -> None:
    files = read_frozen(template).manifest.files
    edit_manifest(template, files={name: files[name] for name in left})
    with pytest.raises(SandboxError, match="deskfork template build desktop --force"):
        read_frozen(template).check()


@given(st.binary(max_size=200) | st.sampled_from([b"{}", b"null", b'{"name": "desktop"}', b"[" * 100_000]))
def test_a_broken_manifest_is_no_crash(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / MANIFEST_NAME).write_bytes(content)
        with pytest.raises(SandboxError, match="manifest cannot be read"):
            read_frozen(Path(folder))


def test_a_folder_without_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="manifest cannot be read"):
        read_frozen(tmp_path)


def test_the_last_user_removes_what_is_no_template_once(template: Path) -> None:
    gone: list[str] = []
    parent = read_frozen(template)
    frozen = Frozen(
        template, parent.manifest, private_key=parent.private_key, parent=parent, on_unused=lambda: gone.append("gone")
    )
    frozen.retain()
    frozen.retain()
    frozen.release()
    assert gone == []
    frozen.release()
    assert gone == ["gone"]
    assert frozen.lineage() == [template, template, parent.manifest.image_directory]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=8), st.integers(0, BLOCK - 1))
def test_a_sparse_copy_has_the_same_bytes_and_no_more_blocks(parts: list[tuple[bool, int]], rest: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "source", Path(folder) / "target"
        with source.open("wb") as stream:
            for number, (is_hole, blocks) in enumerate(parts):
                if is_hole:
                    stream.seek(blocks * BLOCK, os.SEEK_CUR)
                else:
                    stream.write(bytes([number + 1]) * blocks * BLOCK)
            stream.truncate(stream.tell() + rest)
        copy_sparse(source, target)
        assert target.read_bytes() == source.read_bytes()
        assert target.stat().st_blocks <= source.stat().st_blocks
