"""Guards baked templates on disk: damage is found before a fork, and they end with the template that they lie over."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from small_templates import write_baked, write_booted

from deskfork.core.errors import SandboxError
from deskfork.sandbox.frozen.frozen import MANIFEST_NAME, read_frozen
from deskfork.sandbox.templates.listing import list_templates
from deskfork.sandbox.templates.template import find_baked
from deskfork.sandbox.templates.use import is_used

PAGES = 1 << 20


@pytest.fixture
def booted(tmp_path: Path) -> Path:
    """A template that was booted."""
    return write_booted(tmp_path)


@pytest.fixture
def baked(booted: Path) -> Path:
    """What was baked over it."""
    return write_baked(booted, "t1")


def rewrite(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


def turn(path: Path, at: int) -> None:
    """Turn one bit where it is: the file is large, and nearly all holes."""
    path.chmod(0o600)
    with path.open("r+b", buffering=0) as stream:
        place = at if at >= 0 else path.stat().st_size + at
        os.pwrite(stream.fileno(), bytes([os.pread(stream.fileno(), 1, place)[0] ^ 1]), place)


def shorten(path: Path) -> None:
    path.chmod(0o600)
    os.truncate(path, path.stat().st_size - 1)


def test_it_is_found_by_its_key_alone(booted: Path, baked: Path) -> None:
    parent = read_frozen(booted)
    found = find_baked(parent, "t1", network=False)
    assert found is not None
    assert found.directory == baked
    assert find_baked(parent, "t2", network=False) is None
    assert find_baked(parent, "t1", network=True) is None


def test_a_fork_maps_the_parents_memory_and_reads_the_delta(booted: Path, baked: Path) -> None:
    found = read_frozen(baked)
    assert (found.memory, found.state) == (booted / "memory", baked / "delta")
    assert found.is_mapped_ram
    assert found.private_key == booted / "id_ed25519"
    assert found.lineage()[:2] == [baked, booted]


@pytest.mark.parametrize(
    "damage",
    [
        lambda baked: (baked / "delta").unlink(),
        lambda baked: shorten(baked / "delta"),
        lambda baked: turn(baked / "delta", 4096),
        lambda baked: turn(baked / "delta", PAGES + 7),
        lambda baked: turn(baked / "delta", -1),
        lambda baked: turn(baked / "delta", 7),
        lambda baked: turn(baked / "disk.qcow2", 7),
        lambda baked: rewrite(baked / "overlay.qcow2", b""),
    ],
    ids=["no delta", "short", "bitmap", "page", "devices", "header", "disk", "overlay"],
)
def test_damage_is_found_and_the_way_out_is_said(booted: Path, baked: Path, damage: Callable[[Path], None]) -> None:
    damage(baked)
    with pytest.raises(SandboxError, match=r"t1.*deskfork template bake --tasks t1 --force"):
        find_baked(read_frozen(booted), "t1", network=False)


def test_one_whose_template_was_built_again_is_refused(booted: Path, baked: Path) -> None:
    manifest = read_frozen(booted).manifest.model_copy(update={"digest": "d2"})
    rewrite(booted / MANIFEST_NAME, manifest.model_dump_json().encode())
    with pytest.raises(SandboxError, match="built again since"):
        read_frozen(baked)
    assert find_baked(read_frozen(booted), "t1", network=False) is None


def test_who_uses_it_uses_the_template_below(booted: Path, baked: Path) -> None:
    found = read_frozen(baked)
    found.retain()
    found.retain()
    found.release()
    assert is_used(baked)
    assert is_used(booted)
    found.release()
    assert not is_used(baked)
    assert not is_used(booted)


def test_one_that_was_replaced_is_noticed(baked: Path) -> None:
    found = read_frozen(baked)
    assert found.is_there()
    rewrite(baked / MANIFEST_NAME, (baked / MANIFEST_NAME).read_bytes())
    assert not found.is_there()


def test_listing(tmp_path: Path, booted: Path, baked: Path) -> None:
    os.utime(baked, (0, 1_000_000))
    held = read_frozen(booted)
    held.retain()
    one, other = list_templates(tmp_path)
    held.release()
    assert (one.kind, one.name, one.memory, one.is_used, one.problem) == ("booted", "desktop", "own", True, "")
    assert (other.kind, other.task, other.memory, other.parent) == ("baked", "t1", "delta", booted.name)
    assert other.last_used_at.timestamp() == 1_000_000
    assert 1 <= other.disk_mib < 3


def test_what_cannot_be_used_is_listed_with_the_reason(tmp_path: Path, booted: Path, baked: Path) -> None:
    other = write_baked(booted, "t2")
    turn(other / "delta", PAGES)
    rewrite(baked / MANIFEST_NAME, b"{")
    (tmp_path / "templates" / "nothing").mkdir()
    (tmp_path / "templates" / ".half-made.0123").mkdir()
    problems = {found.directory.name: found.problem for found in list_templates(tmp_path)}
    assert problems[booted.name] == ""
    assert "manifest cannot be read" in problems[baked.name]
    assert "hash" in problems[other.name]
    assert "manifest cannot be read" in problems["nothing"]
    assert len(problems) == 4


def test_what_lies_over_a_damaged_template_cannot_be_used_either(tmp_path: Path, booted: Path, baked: Path) -> None:
    rewrite(booted / "memory", b"")
    found = list_templates(tmp_path)
    assert all("memory has 0 bytes" in one.problem for one in found)
    assert {one.directory for one in found} == {booted, baked}
