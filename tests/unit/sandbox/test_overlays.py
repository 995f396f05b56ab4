"""Guards what disks read from when the cache is moved: a disk over the wrong one is a file system destroyed."""

import shutil
import subprocess
from pathlib import Path

import pytest
from small_templates import write_booted

from deskfork.core.errors import SandboxError
from deskfork.sandbox.frozen.frozen import read_frozen
from deskfork.sandbox.frozen.overlays import backing_name, copy_empty_overlay, name_from, set_backing
from deskfork.sandbox.running import create_overlay

needs_qemu_img = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with an image and a template."""
    cache = tmp_path / "cache"
    write_booted(cache)
    image = cache / "images" / "guest-1"
    image.mkdir(parents=True)
    (image / "disk.raw").write_bytes(b"boot" * 1024)
    return cache


@pytest.mark.parametrize("content", [b"", b"QFI", b"no qcow2 at all, but long enough", b"QFI\xfb" + b"\xff" * 60])
def test_what_is_no_disk_has_no_backing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "disk").write_bytes(content)
    assert backing_name(tmp_path / "disk") == ""


def test_names_in_one_cache_are_relative(cache: Path) -> None:
    template = cache / "templates" / "desktop-0123"
    disk = cache / "images" / "guest-1" / "disk.raw"
    assert name_from(template, disk) == "../../images/guest-1/disk.raw"
    assert name_from(template, template.parent / "other" / "d") == "../../templates/other/d"
    assert (template / name_from(template, disk)).resolve() == disk.resolve()


def test_a_folder_that_lies_elsewhere_is_named_absolutely(cache: Path, tmp_path: Path) -> None:
    (cache / "templates").rename(tmp_path / "large-disk")
    (cache / "templates").symlink_to(tmp_path / "large-disk")
    disk = cache / "images" / "guest-1" / "disk.raw"
    assert name_from(cache / "templates" / "desktop-0123", disk) == str(disk)


@needs_qemu_img
def test_a_fork_in_a_moved_cache_reads_the_moved_disk(cache: Path, tmp_path: Path) -> None:
    template = cache / "templates" / "desktop-0123"
    image = cache / "images" / "guest-1" / "disk.raw"
    for name in ("disk.qcow2", "overlay.qcow2"):
        (template / name).unlink()
    create_overlay(template / "disk.qcow2", image, "raw")
    set_backing(template / "disk.qcow2", name_from(template, image), "raw")
    create_overlay(template / "overlay.qcow2", template / "disk.qcow2", "qcow2")
    cache.rename(tmp_path / "moved")
    frozen = read_frozen(tmp_path / "moved" / "templates" / "desktop-0123")

    sandbox = tmp_path / "moved" / "sandboxes" / "0123"
    sandbox.mkdir(parents=True)
    copy_empty_overlay(frozen, sandbox / "disk.qcow2")
    assert backing_name(sandbox / "disk.qcow2") == str(frozen.disk)
    command = ["qemu-img", "convert", "-f", "qcow2", "-O", "raw", str(sandbox / "disk.qcow2"), str(tmp_path / "out")]
    subprocess.run(command, check=True, timeout=60)
    assert (tmp_path / "out").read_bytes() == b"boot" * 1024


def test_the_image_is_found_beside_the_templates(cache: Path, tmp_path: Path) -> None:
    template = cache / "templates" / "desktop-0123"
    manifest = read_frozen(template).manifest.model_copy(update={"image_directory": Path("/old/images/guest-1")})
    (template / "manifest.json").chmod(0o600)
    (template / "manifest.json").write_text(manifest.model_dump_json())
    assert read_frozen(template).manifest.image_directory == cache / "images" / "guest-1"
    (cache / "images" / "guest-1").rename(cache / "images" / "guest-2")
    assert read_frozen(template).manifest.image_directory == Path("/old/images/guest-1")


@needs_qemu_img
def test_a_disk_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(b"none")
    with pytest.raises(SandboxError, match="qemu-img could not change"):
        set_backing(tmp_path / "disk", "other", "raw")
