"""Guards the removal of templates: never one in use, and never one from under what lies over it."""

import os
from pathlib import Path

import pytest
from small_templates import write_baked, write_booted

from deskfork.core.errors import ConfigError, SandboxError
from deskfork.sandbox.frozen.frozen import read_frozen
from deskfork.sandbox.live import claim
from deskfork.sandbox.templates.listing import list_templates
from deskfork.sandbox.templates.prune import Removal, plan_removal, prunable, remove_templates
from deskfork.sandbox.templates.store import remove_partial, retire_outdated, store


@pytest.fixture
def booted(tmp_path: Path) -> Path:
    """A template that was booted."""
    return write_booted(tmp_path)


@pytest.fixture
def baked(booted: Path) -> list[Path]:
    """Three that were baked over it, the first used least recently; of 1, 2 and 3 MiB."""
    made = [write_baked(booted, f"t{number}", mib=number) for number in (1, 2, 3)]
    for number, directory in enumerate(made):
        os.utime(directory, (0, 1000 + number))
    return made


def folders(removals: list[Removal]) -> list[Path]:
    return [removal.template.directory for removal in removals]


def left(cache: Path) -> set[str]:
    return {path.name for path in (cache / "templates").iterdir()}


def test_without_a_limit_only_what_cannot_be_used_goes(tmp_path: Path, booted: Path, baked: list[Path]) -> None:
    assert prunable(tmp_path) == []
    (baked[1] / "delta").unlink()
    removals = prunable(tmp_path)
    assert folders(removals) == [baked[1]]
    assert "delta is missing" in removals[0].reason
    assert remove_templates(removals) == removals
    assert left(tmp_path) == {booted.name, baked[0].name, baked[2].name}


def test_used_least_recently_goes_first(tmp_path: Path, booted: Path, baked: list[Path]) -> None:
    assert prunable(tmp_path, keep_baked_mib=100) == []
    assert folders(prunable(tmp_path, keep_baked_mib=6)) == [baked[0]]
    assert folders(prunable(tmp_path, keep_baked_mib=4)) == baked[:2]
    assert folders(prunable(tmp_path, keep_baked_mib=0)) == baked
    os.utime(baked[0], (0, 2000))
    assert folders(prunable(tmp_path, keep_baked_mib=5)) == [baked[1]]


def test_what_is_used_stays(tmp_path: Path, booted: Path, baked: list[Path]) -> None:
    held = read_frozen(baked[0])
    held.retain()
    os.utime(baked[0], (0, 1000))
    removals = prunable(tmp_path, keep_baked_mib=0)
    assert folders(removals) == baked[1:]
    with pytest.raises(SandboxError, match=r"live sandboxes read from it.*end them first"):
        plan_removal(list_templates(tmp_path), ["desktop"])
    held.release()
    assert len(folders(prunable(tmp_path, keep_baked_mib=0))) == 3


def test_what_comes_to_be_used_meanwhile_stays(tmp_path: Path, booted: Path, baked: list[Path]) -> None:
    removals = prunable(tmp_path, keep_baked_mib=0)
    held = read_frozen(baked[2])
    held.retain()
    assert folders(remove_templates(removals)) == baked[:2]
    held.release()
    assert left(tmp_path) == {booted.name, baked[2].name}


def test_a_template_goes_with_what_lies_over_it(tmp_path: Path, booted: Path, baked: list[Path]) -> None:
    removals = plan_removal(list_templates(tmp_path), ["desktop"])
    assert set(folders(removals)) == {booted, *baked}
    assert folders(remove_templates(removals))[-1] == booted
    assert left(tmp_path) == set()


@pytest.mark.parametrize("name", ["t2", "folder"])
def test_a_baked_one_can_be_named(tmp_path: Path, baked: list[Path], name: str) -> None:
    named = baked[1].name if name == "folder" else name
    assert folders(plan_removal(list_templates(tmp_path), [named])) == [baked[1]]


def test_an_unknown_name_is_refused(tmp_path: Path, baked: list[Path]) -> None:
    with pytest.raises(ConfigError, match="no template 'windows'"):
        plan_removal(list_templates(tmp_path), ["t1", "windows"])


def test_half_made_ones_of_the_dead_are_removed(tmp_path: Path, booted: Path) -> None:
    own = claim(tmp_path, provider="qemu", kind="sandbox")
    names = (f".a-baked-1.{own.record.id}", ".a-baked-1.deadbeef", ".desktop-01.0123abcd.old")
    for name in names:
        (tmp_path / "templates" / name).mkdir()
    assert sorted(remove_partial(tmp_path)) == sorted(names[1:])
    assert left(tmp_path) == {booted.name, names[0]}
    own.release()
    assert remove_partial(tmp_path) == [names[0]]
    assert remove_partial(tmp_path / "no-cache") == []


def test_a_new_one_takes_the_place_of_an_old_one(tmp_path: Path, booted: Path) -> None:
    partial = tmp_path / "templates" / ".desktop-0123.abcd"
    partial.mkdir()
    (partial / "new").touch()
    store(partial, booted)
    assert left(tmp_path) == {booted.name}
    assert (booted / "new").exists()


def test_one_in_use_is_not_replaced(tmp_path: Path, booted: Path) -> None:
    held = read_frozen(booted)
    held.retain()
    partial = tmp_path / "templates" / ".desktop-0123.abcd"
    partial.mkdir()
    with pytest.raises(SandboxError, match="live sandboxes read from it"):
        store(partial, booted)
    held.release()
    assert left(tmp_path) == {booted.name}
    assert held.is_there()


def test_what_was_baked_over_the_one_before_goes(tmp_path: Path, booted: Path, baked: list[Path]) -> None:
    assert retire_outdated(booted, "d1") == []
    assert retire_outdated(booted, "d2") == ["t1", "t2", "t3"]
    assert left(tmp_path) == {booted.name}
