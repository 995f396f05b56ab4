"""Guards `Guest.put` and `Guest.get`: nothing lost or renamed on the way, and no guest file that harms the host."""

from pathlib import Path, PurePosixPath

import pytest

from deskfork.core.errors import GuestFileError
from deskfork.sandbox.base import Sandbox

CONTENT = bytes(range(256)) * 64


def test_bytes_come_back_as_they_went(sandbox: Sandbox, place: PurePosixPath, tmp_path: Path) -> None:
    sandbox.put(CONTENT, place)
    sandbox.get(place, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == CONTENT


def test_an_empty_file_comes_back_empty(sandbox: Sandbox, place: PurePosixPath, tmp_path: Path) -> None:
    sandbox.put(b"", place)
    sandbox.get(place, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b""


def test_a_file_with_an_awkward_name_comes_back(sandbox: Sandbox, place: PurePosixPath, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(CONTENT)
    target = place / "größe 'x' $HOME →.csv"
    sandbox.put(tmp_path / "source", target)
    sandbox.get(target, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == CONTENT


def test_a_directory_comes_back_with_all_in_it(sandbox: Sandbox, place: PurePosixPath, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "a" / "b ü").mkdir(parents=True)
    (source / "top.txt").write_text("top")
    (source / "a" / "b ü" / "deep.bin").write_bytes(CONTENT)
    sandbox.put(source, place)
    sandbox.get(place, tmp_path / "back")
    found = {str(path.relative_to(tmp_path / "back")) for path in (tmp_path / "back").rglob("*") if path.is_file()}
    assert found == {"top.txt", "a/b ü/deep.bin"}
    assert (tmp_path / "back" / "a" / "b ü" / "deep.bin").read_bytes() == CONTENT


def test_put_replaces_a_file_and_merges_into_a_directory(
    sandbox: Sandbox, place: PurePosixPath, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "new").write_text("new")
    sandbox.put(b"a longer text that is there first", place / "new")
    sandbox.put(b"kept", place / "kept")
    sandbox.put(source, place)
    sandbox.get(place, tmp_path / "back")
    assert {path.name: path.read_text() for path in (tmp_path / "back").iterdir()} == {"new": "new", "kept": "kept"}


def test_what_was_put_belongs_to_the_guests_user(sandbox: Sandbox, place: PurePosixPath) -> None:
    sandbox.put(b"x", place / "file")
    script = f'test "$(stat -c %U ~/Desktop/{place.name} ~/Desktop/{place.name}/file | uniq)" = "$(id -un)"'
    assert sandbox.exec(["bash", "-c", script], timeout_s=30).exit_code == 0


def test_a_missing_file_is_the_guests_fact(sandbox: Sandbox, place: PurePosixPath, tmp_path: Path) -> None:
    with pytest.raises(GuestFileError, match=place.name):
        sandbox.get(place, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_a_file_over_the_limit_is_refused(sandbox: Sandbox, place: PurePosixPath, tmp_path: Path) -> None:
    sandbox.put(b"12345", place)
    sandbox.get(place, tmp_path / "fits", max_bytes=5)
    with pytest.raises(GuestFileError):
        sandbox.get(place, tmp_path / "back", max_bytes=4)


def test_a_directory_over_the_limit_is_refused(sandbox: Sandbox, place: PurePosixPath, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        sandbox.put(b"12345", place / name)
    with pytest.raises(GuestFileError):
        sandbox.get(place, tmp_path / "back", max_bytes=12)


def test_a_pipe_is_no_file(sandbox: Sandbox, place: PurePosixPath, tmp_path: Path) -> None:
    assert sandbox.exec(["mkfifo", str(place)], timeout_s=30).exit_code == 0
    with pytest.raises(GuestFileError):
        sandbox.get(place, tmp_path / "back", timeout_s=20)


def test_links_in_a_directory_never_lead_out_of_it(sandbox: Sandbox, place: PurePosixPath, tmp_path: Path) -> None:
    sandbox.put(b"inside", place / "file")
    script = f"cd ~/Desktop/{place.name} && ln -s /etc/passwd link && ln -s /etc dirlink && ln -s nowhere dangling"
    assert sandbox.exec(["bash", "-c", script], timeout_s=30).exit_code == 0
    sandbox.get(place, tmp_path / "back")
    assert (tmp_path / "back" / "file").read_text() == "inside"
    for name in ("link", "dirlink", "dangling"):
        assert not (tmp_path / "back" / name).is_symlink()
        assert not (tmp_path / "back" / name).exists()
