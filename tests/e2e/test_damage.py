"""Guards damaged and missing templates: one sentence, the right exit code, nothing left running."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deskfork.core.config import cache_dir
from deskfork.core.errors import HostDiskFull, SandboxError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import Sandbox
from deskfork.sandbox.frozen.files import FrozenFile, file_sha256
from deskfork.sandbox.frozen.frozen import MANIFEST_NAME, read_frozen
from deskfork.sandbox.images.recipes import recipe_dir
from deskfork.sandbox.provider import VmProvider
from deskfork.sandbox.providers.qemu import QemuLauncher
from deskfork.sandbox.templates.template import find_template

Deskfork = Callable[..., Any]

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("qemu")]


@pytest.fixture
def empty_cache() -> Iterator[Path]:
    """A cache with nothing in it."""
    # pytest's own folders have names too long for sockets.
    with tempfile.TemporaryDirectory(prefix="deskfork-") as folder:
        yield Path(folder)


@pytest.fixture
def template(qemu: VmProvider, empty_cache: Path) -> Path:
    """A copy of the template `desktop` that may be damaged, in a cache that has all else by links."""
    real = find_template(cache_dir(), "desktop", qemu.image(), qemu.launcher).directory
    copy = empty_cache / "templates" / real.name
    copy.mkdir(parents=True)
    for name in ("images", "acceleration"):
        (empty_cache / name).symlink_to(cache_dir() / name)
    for path in real.iterdir():
        (copy / path.name).symlink_to(path)
    return copy


def replace(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


def edit_manifest(template: Path, **changes: object) -> None:
    manifest = read_frozen(template).manifest.model_copy(update=changes)
    replace(template / MANIFEST_NAME, manifest.model_dump_json().encode())


def cut_state(template: Path) -> None:
    content = (template / "state").read_bytes()
    replace(template / "state", content[: len(content) // 2])


def turn_state(template: Path) -> None:
    content = bytearray((template / "state").read_bytes())
    content[len(content) // 2] ^= 0xFF
    replace(template / "state", bytes(content))


def forge_state(template: Path) -> None:
    """Damage the state so that only QEMU can find it out."""
    content = (template / "state").read_bytes()
    replace(template / "state", content[: len(content) // 2])
    files = read_frozen(template).manifest.files
    forged = FrozenFile(size=len(content) // 2, sha256=file_sha256(template / "state"))
    edit_manifest(template, files={**files, "state": forged})


def lose_memory(template: Path) -> None:
    (template / "memory").unlink()


def lose_manifest(template: Path) -> None:
    replace(template / MANIFEST_NAME, b'{"name": "desk')


def start(deskfork: Deskfork, cache: Path, *options: str) -> Any:
    return deskfork("sandbox", "start", "--template", "desktop", "--provider", "qemu", *options, cache=cache)


def check_refused(answer: Any, code: int, *said: str) -> None:
    assert answer.code == code, answer.err
    assert answer.out == ""
    assert answer.err.startswith("deskfork: ")
    assert answer.err.count("\n") == 1, answer.err
    for text in said:
        assert text in answer.err


def check_nothing_left(cache: Path) -> None:
    assert list((cache / "sandboxes").glob("*")) == []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            assert os.fsencode(cache) not in (entry / "cmdline").read_bytes(), entry
        except OSError:
            continue


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut_state, "state has"),
        (turn_state, "does not match its hash"),
        (lose_memory, "memory is missing"),
        (lose_manifest, "manifest cannot be read"),
        (forge_state, "QEMU"),
    ],
)
def test_a_damaged_template(
    deskfork: Deskfork, template: Path, empty_cache: Path, damage: Callable[[Path], None], said: str
) -> None:
    damage(template)
    check_refused(start(deskfork, empty_cache), 3, said)
    check_nothing_left(empty_cache)


def test_a_run_on_a_damaged_template(deskfork: Deskfork, template: Path, empty_cache: Path, tmp_path: Path) -> None:
    cut_state(template)
    options = ["--tasks", "sales-by-region", "--agent", "null", "--provider", "qemu", "--out", tmp_path / "runs"]
    check_refused(deskfork("run", "start", *options, cache=empty_cache), 3, "template build desktop --force")
    check_nothing_left(empty_cache)


def test_a_guest_that_does_not_take_our_word(deskfork: Deskfork, template: Path, empty_cache: Path) -> None:
    edit_manifest(template, token="0" * 32)
    check_refused(start(deskfork, empty_cache), 3, "the fork did not answer")
    check_nothing_left(empty_cache)


@contextmanager
def small_disk(cache: Path, size_mib: int) -> Iterator[Path]:
    """Give the sandboxes of `cache` a disk of that size; yield where it is mounted."""
    folder = cache / "sandboxes"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", str(folder)]
    if os.getuid() or subprocess.run(mount, capture_output=True, timeout=30, check=False).returncode:
        pytest.skip("a small disk can be mounted by root only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], timeout=30, check=True)


def test_a_full_disk(deskfork: Deskfork, template: Path, empty_cache: Path) -> None:
    with small_disk(empty_cache, 1):
        check_refused(start(deskfork, empty_cache), 3, "are free")
        check_nothing_left(empty_cache)


def refusal(sandbox: Sandbox) -> HostDiskFull | None:
    try:
        sandbox.exec(["sync"], timeout_s=3)
    except HostDiskFull as error:
        return error
    return None


def test_a_disk_that_fills_up(template: Path, empty_cache: Path) -> None:
    with (
        small_disk(empty_cache, 90) as folder,
        VmProvider(QemuLauncher(empty_cache), empty_cache, recipe_dir("guest")) as provider,
        provider.fork("desktop") as sandbox,
    ):
        with pytest.raises(SandboxError, match="No space left"):
            sandbox.checkpoint()
        assert sandbox.run_cell("print(1)", timeout_s=30).stdout == "1\n", "it does not go on"
        assert [path.name for path in folder.iterdir()] == [sandbox.facts.id]
        assert not list(sandbox.directory.glob("memory*"))
        sandbox.exec(["bash", "-c", "dd if=/dev/urandom of=large bs=1M count=100 conv=fsync &"], timeout_s=30)
        assert "could not be written" in str(wait_until(lambda: refusal(sandbox), Deadline.after(90)))
    check_nothing_left(empty_cache)


def test_a_template_of_another_image(deskfork: Deskfork, template: Path, empty_cache: Path) -> None:
    shutil.rmtree(template)
    check_refused(start(deskfork, empty_cache), 2, "deskfork template build desktop")
    listed = deskfork("template", "list", "--json", cache=empty_cache)
    assert (listed.code, listed.json()) == (0, [])


@pytest.mark.parametrize("provider", ["qemu", "auto"])
def test_an_empty_cache(deskfork: Deskfork, empty_cache: Path, tmp_path: Path, provider: str) -> None:
    arguments = ["sandbox", "start", "--provider", provider]
    check_refused(deskfork(*arguments, cache=empty_cache), 2, "deskfork image build")
    options = ["--tasks", "sales-by-region", "--agent", "null", "--provider", provider, "--out", tmp_path / "runs"]
    check_refused(deskfork("run", "start", *options, cache=empty_cache), 2, "deskfork image build")
    check_nothing_left(empty_cache)


def test_an_unknown_template(deskfork: Deskfork, empty_cache: Path) -> None:
    answer = deskfork("sandbox", "start", "--template", "no-such", "--provider", "qemu", cache=empty_cache)
    check_refused(answer, 2, "no-such", "desktop", "jupyter")
