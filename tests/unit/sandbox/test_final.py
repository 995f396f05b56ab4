"""Guards kept final states: one read over another template than it was written on shows what nobody ever wrote."""

import shutil
from pathlib import Path, PurePosixPath

import pytest
from small_templates import write_booted

from deskfork.core.errors import ConfigError, SandboxError
from deskfork.sandbox.final.masks import is_masked
from deskfork.sandbox.final.state import FinalState, final_disk, load_state
from deskfork.sandbox.frozen.frozen import read_frozen
from deskfork.sandbox.running import create_overlay


@pytest.fixture
def template(tmp_path: Path) -> Path:
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "disk.raw").write_bytes(b"image")
    return write_booted(tmp_path)


@pytest.fixture
def state(tmp_path: Path, template: Path) -> FinalState:
    sandbox = tmp_path / "sandboxes" / "0123abcd"
    sandbox.mkdir(parents=True)
    create_overlay(sandbox / "disk.qcow2", template / "disk.qcow2", "qcow2", 1 << 20)
    return final_disk(sandbox / "disk.qcow2", read_frozen(template), "sync")


def test_what_was_kept_is_read_again_wherever_it_lies(state: FinalState, tmp_path: Path, template: Path) -> None:
    written = state.disk.read_bytes()
    kept = state.keep(tmp_path / "attempt" / "state")
    shutil.rmtree(state.disk.parent)
    moved = (tmp_path / "attempt").rename(tmp_path / "moved") / "state"
    read = load_state(moved)
    assert read.disk == moved / kept.disk.name
    assert read.disk.read_bytes() == written
    assert read.readable == [moved, template, tmp_path / "image"]
    read.require_readable("i", tmp_path)


def test_a_state_without_its_disk_is_refused(state: FinalState, tmp_path: Path) -> None:
    state.disk.unlink()
    with pytest.raises(ConfigError, match="disk is gone"):
        state.require_readable("i", tmp_path)


def test_another_image_is_refused(state: FinalState, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="only with the image"):
        state.require_readable("j", tmp_path)


def test_a_missing_image_is_refused(state: FinalState, tmp_path: Path) -> None:
    (tmp_path / "image" / "disk.raw").unlink()
    with pytest.raises(ConfigError, match=r"disk\.raw, which is gone"):
        state.require_readable("i", tmp_path)


def test_a_missing_template_is_refused(state: FinalState, template: Path, tmp_path: Path) -> None:
    shutil.rmtree(template)
    with pytest.raises(ConfigError, match=r"disk\.qcow2, which is gone"):
        state.require_readable("i", tmp_path)


def test_a_template_that_was_built_again_is_refused(state: FinalState, template: Path, tmp_path: Path) -> None:
    shutil.rmtree(template)
    write_booted(tmp_path, digest="d2")
    with pytest.raises(ConfigError, match="holds d2"):
        state.require_readable("i", tmp_path)


def test_a_damaged_template_is_refused(state: FinalState, template: Path, tmp_path: Path) -> None:
    (template / "manifest.json").unlink()
    with pytest.raises(ConfigError, match="damaged"):
        state.require_readable("i", tmp_path)


def test_a_disk_that_reads_from_elsewhere_is_refused(state: FinalState, tmp_path: Path, template: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(1 << 20))
    state.disk.unlink()
    create_overlay(state.disk, secret, "raw")
    with pytest.raises(ConfigError, match="no disk over"):
        state.require_readable("i", tmp_path)
    state.disk.write_bytes(b"no disk at all")
    with pytest.raises(ConfigError, match="no disk over"):
        state.require_readable("i", tmp_path)


@pytest.mark.parametrize("above", ["", "cache/templates/.."])
def test_a_state_over_what_is_not_in_the_cache_is_refused(state: FinalState, tmp_path: Path, above: str) -> None:
    cache = tmp_path / "cache"
    first, *rest = state.backing
    elsewhere = tmp_path / above / ".." / first.directory.relative_to(tmp_path) if above else first.directory
    state.disk.unlink()
    create_overlay(state.disk, elsewhere / "disk.qcow2", "qcow2", 1 << 20)
    forged = state.model_copy(update={"backing": (first.model_copy(update={"directory": elsewhere}), *rest)})
    with pytest.raises(ConfigError, match="not in the cache"):
        forged.require_readable("i", cache)


def test_a_state_that_cannot_be_kept_is_our_failure(state: FinalState, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SandboxError, match="could not be kept"):
        state.keep(tmp_path / "file" / "state")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/user/.bashrc", True),
        ("/home/user/.jupyter/lab/user-settings/x.json", True),
        ("/home/user/anaconda3/envs/jupyter/bin/jupyter", True),
        ("/home/user/.local/share/jupyter/kernels/own/kernel.json", False),
        ("/home/user/.bashrc.bak", False),
        ("/home/user/Desktop/.bashrc", False),
        ("/home/user/.jupyter/../../../etc/passwd", False),
        ("/etc/passwd", False),
    ],
)
def test_what_programs_must_not_see_is_known(path: str, expected: bool) -> None:
    assert is_masked(PurePosixPath(path)) is expected
