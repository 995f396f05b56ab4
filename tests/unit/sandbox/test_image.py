"""Images: what is cached is not built again, what is damaged is noticed, and a failed stage says what went wrong.

The stages here are small ones of our own; building Debian takes minutes and root.
"""

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from deskfork.core.errors import ConfigError, InfraError
from deskfork.sandbox.images.guest import GuestStages, install_tree, read_list
from deskfork.sandbox.images.host import require_programs, require_space
from deskfork.sandbox.images.image import GUEST_PACKAGE, find_guest_image, find_qemu_rootfs, list_images
from deskfork.sandbox.images.keys import key_of, tree_key
from deskfork.sandbox.images.recipes import recipe_dir
from deskfork.sandbox.images.seal import damage, file_digest, is_intact, read_seal, seal
from deskfork.sandbox.images.store import ImageManifest
from deskfork.sandbox.images.workshop import Progress, Stage, Workshop


class Log:
    """What a build reported."""

    def __init__(self) -> None:
        self.news: list[Progress] = []

    def __call__(self, progress: Progress) -> None:
        self.news.append(progress)

    def built(self) -> list[str]:
        return [progress.stage for progress in self.news if progress.line == "building"]


def stage(
    name: str, make: Callable[[Workshop, Path], None] | None = None, *, inputs: str = "1", timeout_s: float = 30.0
) -> Stage:
    def write(workshop: Workshop, result: Path) -> None:
        (result / "file").write_text(f"{name} of {inputs}")

    return Stage(name, key_of(name, inputs), make or write, weight_s=1.0, timeout_s=timeout_s)


def build(cache: Path, *stages: Stage) -> Log:
    log = Log()
    workshop = Workshop(cache, log)
    with workshop.lock():
        workshop.ensure(stages)
    return log


def left_overs(cache: Path) -> list[Path]:
    return list((cache / "stages").glob(".*.partial"))


def test_a_second_build_does_nothing(tmp_path: Path) -> None:
    assert build(tmp_path, stage("one"), stage("two")).built() == ["one", "two"]
    assert build(tmp_path, stage("one"), stage("two")).built() == []


def test_a_changed_stage_is_built_again_and_its_old_result_removed(tmp_path: Path) -> None:
    build(tmp_path, stage("one"), stage("two"))
    assert build(tmp_path, stage("one"), stage("two", inputs="2")).built() == ["two"]
    assert [path.read_text() for path in (tmp_path / "stages").glob("two-*/file")] == ["two of 2"]


def test_a_failed_build_goes_on_at_the_failed_stage(tmp_path: Path) -> None:
    def fail(workshop: Workshop, result: Path) -> None:
        (result / "half").write_text("half")
        workshop.run(["sh", "-c", "echo started; echo 'E: no such package: foo' >&2; echo bye; exit 3"])

    with pytest.raises(
        InfraError, match=r"image stage two: sh ended with 3: E: no such package: foo \(log: .*two\.log"
    ):
        build(tmp_path, stage("one"), stage("two", fail))
    assert left_overs(tmp_path) == []
    assert "started" in (tmp_path / "logs/image-two.log").read_text()
    assert build(tmp_path, stage("one"), stage("two")).built() == ["two"]


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupted(workshop: Workshop, result: Path) -> None:
        (result / "half").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, stage("one", interrupted))
    assert left_overs(tmp_path) == []
    assert build(tmp_path, stage("one")).built() == ["one"]


def test_what_a_killed_build_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "stages/.base-x.partial/root").mkdir(parents=True)
    build(tmp_path, stage("one"))
    assert left_overs(tmp_path) == []


def test_a_program_that_hangs_is_killed_at_the_deadline(tmp_path: Path) -> None:
    def hang(workshop: Workshop, result: Path) -> None:
        workshop.run(["sleep", "600"])

    with pytest.raises(InfraError, match=r"sleep did not end within 0 s"):
        build(tmp_path, stage("one", hang, timeout_s=0.3))


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    def missing(workshop: Workshop, result: Path) -> None:
        workshop.run(["no-such-program-here"])

    with pytest.raises(InfraError, match="no-such-program-here"):
        build(tmp_path, stage("one", missing))


def test_programs_report_line_by_line_with_a_fraction(tmp_path: Path) -> None:
    def talk(workshop: Workshop, result: Path) -> None:
        workshop.run(["printf", "first\\nsecond\\n"])

    news = build(tmp_path, stage("one"), stage("two", talk)).news
    assert [(p.stage, p.fraction, p.line) for p in news[1:]] == [
        ("two", 0.5, "building"),
        ("two", 0.5, "first"),
        ("two", 0.5, "second"),
    ]


@pytest.mark.parametrize("harm", ["truncate", "change", "remove", "unseal"])
def test_a_damaged_stage_is_built_again(tmp_path: Path, harm: str) -> None:
    build(tmp_path, stage("one"), stage("two"))
    file = next((tmp_path / "stages").glob("one-*/file"))
    if harm == "truncate":
        file.write_text("")
    elif harm == "change":
        file.write_text(file.read_text().upper())
    elif harm == "remove":
        file.unlink()
    else:
        (file.parent / "seal.json").write_text("{")
    assert build(tmp_path, stage("one"), stage("two")).built() == ["one"]


def test_two_builds_do_not_run_at_once(tmp_path: Path) -> None:
    (tmp_path / "stages").mkdir()
    with (tmp_path / "stages/.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(InfraError, match="another build still runs"), Workshop(tmp_path, Log()).lock(timeout_s=0.1):
            pass
    assert build(tmp_path, stage("one")).built() == ["one"]


def test_a_digest_sees_every_byte_but_not_the_holes(tmp_path: Path) -> None:
    sparse, filled = tmp_path / "sparse", tmp_path / "filled"
    with sparse.open("wb") as stream:
        stream.seek(5 * 2**20 + 17)
        stream.write(b"data")
        stream.truncate(9 * 2**20)
    filled.write_bytes(sparse.read_bytes())
    assert file_digest(sparse) == file_digest(filled)
    with filled.open("r+b") as stream:
        stream.seek(8 * 2**20)
        stream.write(b"\1")
    assert file_digest(sparse) != file_digest(filled)
    with sparse.open("r+b") as stream:
        before = file_digest(sparse)
        stream.truncate(9 * 2**20 + 1)
    assert file_digest(sparse) != before


def test_seals_tell_size_damage_without_reading(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("abc")
    sealed = seal(tmp_path)
    assert read_seal(tmp_path) == sealed
    assert is_intact(tmp_path)
    (tmp_path / "a").write_text("abd")
    assert damage(tmp_path, sealed, check_contents=False) is None
    assert "other contents" in str(damage(tmp_path, sealed, check_contents=True))
    (tmp_path / "a").write_text("ab")
    assert "2 bytes, should have 3" in str(damage(tmp_path, sealed, check_contents=False))


def test_keys_depend_on_names_contents_modes_and_links_but_not_on_caches(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    seen = {tree_key(tmp_path)}
    (tmp_path / "a").chmod(0o755)
    seen.add(tree_key(tmp_path))
    (tmp_path / "b").symlink_to("a")
    seen.add(tree_key(tmp_path))
    (tmp_path / "b").unlink()
    (tmp_path / "b").symlink_to("c")
    seen.add(tree_key(tmp_path))
    (tmp_path / "a").write_text("y")
    seen.add(tree_key(tmp_path))
    (tmp_path / "a").rename(tmp_path / "c")
    seen.add(tree_key(tmp_path))
    assert len(seen) == 6
    last = tree_key(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/a.pyc").write_text("z")
    assert tree_key(tmp_path) == last
    assert key_of("ab", "c") != key_of("a", "bc")


def test_a_change_in_the_overlay_rebuilds_only_the_disk(tmp_path: Path) -> None:
    recipe = tmp_path / "guest"
    shutil.copytree(recipe_dir("guest"), recipe, symlinks=True)
    before = GuestStages(recipe, GUEST_PACKAGE)
    keys = {stage.name: stage.key for stage in before.all()}
    (recipe / "rootfs/etc/motd").write_text("hello")
    assert {stage.name for stage in before.all() if stage.key != keys[stage.name]} == {"disk"}
    (recipe / "packages.txt").write_text("hello\n")
    assert {stage.name for stage in before.all() if stage.key != keys[stage.name]} == {"base", "python", "disk"}


def test_the_overlay_is_installed_with_plain_modes_over_what_is_there(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "etc").mkdir(parents=True)
    (source / "etc/new").write_text("new")
    (source / "etc/new").chmod(0o600)
    (source / "etc/run").write_text("#!/bin/sh\n")
    (source / "etc/run").chmod(0o700)
    (source / "etc/link").symlink_to("/dev/null")
    (target / "etc").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.write_text("mine")
    # A link in the target must be replaced, not followed: Debian's resolv.conf may be one.
    (target / "etc/new").symlink_to(outside)
    install_tree(source, target)
    assert outside.read_text() == "mine"
    assert (target / "etc/new").read_text() == "new"
    assert (target / "etc/new").stat().st_mode & 0o777 == 0o644
    assert (target / "etc/run").stat().st_mode & 0o777 == 0o755
    assert str((target / "etc/link").readlink()) == "/dev/null"


def publish(cache: Path, kind: str, key: str) -> Path:
    folder = cache / "images" / f"{kind}-x"
    folder.mkdir(parents=True)
    name = "disk.raw" if kind == "guest" else "rootfs.tar"
    (folder / name).write_bytes(b"image")
    sealed = seal(folder)
    manifest = {"kind": kind, "key": key, "digest": sealed.digest, "built_at": "2026-11-21T00:00:00Z"}
    made = ImageManifest.model_validate({**manifest, "files": sealed.files})
    (folder / "manifest.json").write_text(made.model_dump_json())
    return folder


def test_images_are_found_by_recipe_and_only_undamaged(tmp_path: Path) -> None:
    recipe = recipe_dir("guest")
    with pytest.raises(ConfigError, match="not built"):
        find_guest_image(tmp_path, recipe)
    folder = publish(tmp_path, "guest", "key of an older recipe")
    with pytest.raises(ConfigError, match="its recipe has changed"):
        find_guest_image(tmp_path, recipe)
    (summary,) = list_images(tmp_path, guest_recipe=recipe, qemu_recipe=recipe_dir("qemu"))
    assert not summary.is_current

    shutil.rmtree(folder)
    folder = publish(tmp_path, "guest", GuestStages(recipe, GUEST_PACKAGE).disk.key)
    assert find_guest_image(tmp_path, recipe).directory == folder
    (folder / "disk.raw").write_bytes(b"im")
    with pytest.raises(ConfigError, match="damaged"):
        find_guest_image(tmp_path, recipe)
    with pytest.raises(ConfigError, match="qemu image is not built"):
        find_qemu_rootfs(tmp_path, recipe_dir("qemu"))


def test_unreadable_manifests_are_no_images(tmp_path: Path) -> None:
    (tmp_path / "images/guest-y").mkdir(parents=True)
    (tmp_path / "images/guest-y/manifest.json").write_text('{"kind": "guest"}')
    assert list_images(tmp_path, guest_recipe=recipe_dir("guest"), qemu_recipe=recipe_dir("qemu")) == []


def test_missing_programs_and_space_are_said_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="debian-one debian-two"):
        require_programs({"no-program-2": "debian-two", "no-program-1": "debian-one", "sh": "dash"})
    with pytest.raises(ConfigError, match=r"needs 1000000 GiB of free disk, there are \d+"):
        require_space(tmp_path, 1e6)


@pytest.mark.parametrize("kind", ["guest", "qemu"])
def test_package_lists_name_each_package_once(kind: str) -> None:
    packages = read_list(recipe_dir("guest" if kind == "guest" else "qemu") / "packages.txt")
    assert packages
    assert len(packages) == len(set(packages))


@pytest.mark.parametrize("name", ["jupyter", "service"])
def test_every_pinned_wheel_has_a_hash_and_no_host(name: str) -> None:
    text = (recipe_dir("guest") / "python" / f"{name}.lock").read_text()
    pins = [line for line in text.splitlines() if "==" in line and not line.lstrip().startswith("#")]
    assert pins
    assert all(line.endswith("\\") for line in pins)
    assert text.count("--hash=sha256:") >= len(pins)
    assert "://" not in text
    assert "index-url" not in text
