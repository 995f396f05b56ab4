"""Guards against guest files that escape their folder, fill the disk, block the copy, arrive half; on a real sshd."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from transport_services import Sshd

from deskfork.core.errors import ConfigError, GuestFileError, TransportError
from deskfork.transport import sftp
from deskfork.transport.ssh import SshClient


@pytest.fixture(scope="module")
def ssh(sshd: Sshd) -> Iterator[SshClient]:
    client = SshClient(sshd.endpoint, user="root", private_key=sshd.private_key, host_key=sshd.host_key)
    yield client
    client.close()


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    """Where the "guest" of these tests, this machine, keeps its files."""
    (tmp_path / "guest").mkdir()
    return tmp_path / "guest"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "host").mkdir()
    return tmp_path / "host"


def as_guest(path: Path) -> PurePosixPath:
    return PurePosixPath(path)


@pytest.mark.parametrize("content", [b"", b"x", os.urandom(3_000_000)], ids=["empty", "small", "large"])
def test_bytes_round_trip(ssh: SshClient, guest: Path, host: Path, content: bytes) -> None:
    ssh.put(content, as_guest(guest / "made/on the way/ü.bin"))
    assert (guest / "made/on the way/ü.bin").read_bytes() == content
    ssh.get(as_guest(guest / "made/on the way/ü.bin"), host / "also/made")
    assert (host / "also/made").read_bytes() == content


def test_a_file_is_replaced_and_shorter_content_leaves_no_rest(ssh: SshClient, guest: Path, host: Path) -> None:
    for content in (b"long content", b"short"):
        ssh.put(content, as_guest(guest / "file"))
        ssh.get(as_guest(guest / "file"), host / "file")
        assert (host / "file").read_bytes() == content


def test_directories_round_trip_and_merge(ssh: SshClient, guest: Path, host: Path) -> None:
    (host / "tree/deep/empty").mkdir(parents=True)
    (host / "tree/deep/file.txt").write_text("text")
    (host / "tree/run.sh").write_text("#!/bin/sh")
    (host / "tree/run.sh").chmod(0o755)
    (guest / "tree").mkdir()
    (guest / "tree/older").write_text("kept")
    ssh.put(host / "tree", as_guest(guest / "tree"))
    assert os.access(guest / "tree/run.sh", os.X_OK)
    ssh.get(as_guest(guest / "tree"), host / "back")
    found = {str(path.relative_to(host / "back")) for path in (host / "back").rglob("*")}
    assert found == {"deep", "deep/empty", "deep/file.txt", "run.sh", "older"}
    assert (host / "back/deep/file.txt").read_text() == "text"


def test_what_is_missing_or_unreadable_is_a_fact_about_the_guest(ssh: SshClient, guest: Path, host: Path) -> None:
    with pytest.raises(GuestFileError, match=r"no .*/nothing"):
        ssh.get(as_guest(guest / "nothing"), host / "x")
    (guest / "file").write_text("x")
    with pytest.raises(GuestFileError):
        ssh.get(as_guest(guest / "file/below"), host / "x")
    assert list(host.iterdir()) == []


def test_what_the_file_system_fails_to_read_is_a_fact_about_the_guest(ssh: SshClient, host: Path) -> None:
    # Nothing is mapped at the address 0: reading it fails as a damaged disk does.
    with pytest.raises(GuestFileError, match="could not be read there"):
        ssh.get(PurePosixPath("/proc/self/mem"), host / "back")
    with pytest.raises(GuestFileError, match="could not be read there"):
        ssh.get(PurePosixPath("/tmp") / ("x" * 300), host / "back")


def test_links_are_never_followed(ssh: SshClient, guest: Path, host: Path) -> None:
    (guest / "tree").mkdir()
    (guest / "tree/real").write_text("real")
    (guest / "tree/to-file").symlink_to("/etc/passwd")
    (guest / "tree/to-folder").symlink_to("/etc")
    (guest / "tree/loop").symlink_to(".")
    ssh.get(as_guest(guest / "tree"), host / "tree")
    assert [path.name for path in (host / "tree").iterdir()] == ["real"]
    for name in ("to-file", "to-folder", "loop"):
        with pytest.raises(GuestFileError, match="neither"):
            ssh.get(as_guest(guest / "tree" / name), host / "x")


def test_special_files_neither_block_nor_arrive(ssh: SshClient, guest: Path, host: Path) -> None:
    (guest / "tree").mkdir()
    os.mkfifo(guest / "tree/pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(guest / "tree/sock"))
        ssh.get(as_guest(guest / "tree"), host / "tree")
    assert list((host / "tree").iterdir()) == []
    for name in (guest / "tree/pipe", Path("/dev/zero")):
        with pytest.raises(GuestFileError, match="neither"):
            ssh.get(as_guest(name), host / "x")


def test_too_much_is_refused_and_nothing_is_left(ssh: SshClient, guest: Path, host: Path) -> None:
    (guest / "tree").mkdir()
    for index in range(3):
        (guest / f"tree/{index}").write_bytes(bytes(1000))
    with (guest / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(GuestFileError, match="more than"):
        ssh.get(as_guest(guest / "sparse"), host / "x")
    with pytest.raises(GuestFileError):
        ssh.get(as_guest(guest / "tree"), host / "x", max_bytes=2500)
    assert list(host.iterdir()) == []
    ssh.get(as_guest(guest / "tree"), host / "x", max_bytes=3000)


def test_a_file_without_a_size_is_bounded_too(ssh: SshClient, host: Path) -> None:
    ssh.get(PurePosixPath("/proc/version"), host / "version")
    assert (host / "version").read_text() == Path("/proc/version").read_text()
    with pytest.raises(GuestFileError, match="grew"):
        ssh.get(PurePosixPath("/proc/version"), host / "x", max_bytes=3)


def test_depth_and_number_are_bounded(ssh: SshClient, guest: Path, host: Path) -> None:
    deep = guest / "deep"
    for index in range(70):
        deep = deep / str(index)
    deep.mkdir(parents=True)
    with pytest.raises(GuestFileError, match="deep"):
        ssh.get(as_guest(guest / "deep"), host / "x")
    (guest / "wide").mkdir()
    for index in range(4):
        (guest / "wide" / str(index)).touch()
    with ssh._sftp("test", 10.0) as client:
        with pytest.raises(GuestFileError, match="more than"):
            sftp._Fetch(client, 100, entries_left=3).directory(as_guest(guest / "wide"), host / "x", 0)
        sftp._Fetch(client, 100, entries_left=4).directory(as_guest(guest / "wide"), host / "y", 0)
    assert len(list((host / "y").iterdir())) == 4


def test_a_name_that_is_not_utf8_is_a_fact_about_the_guest(ssh: SshClient, guest: Path, host: Path) -> None:
    (guest / "tree").mkdir()
    Path(os.fsdecode(os.fsencode(guest / "tree") + b"/bad\xff")).touch()
    with pytest.raises(GuestFileError, match="UTF-8"):
        ssh.get(as_guest(guest / "tree"), host / "x")
    assert list(host.iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a\0b", "x" * 256])
def test_an_impossible_name_is_refused(name: str) -> None:
    with pytest.raises(GuestFileError, match="impossible"):
        sftp._checked_name(PurePosixPath("/f"), name)


def test_what_the_host_cannot_give_or_take_is_a_config_error(ssh: SshClient, guest: Path, host: Path) -> None:
    (guest / "file").write_text("x")
    with pytest.raises(ConfigError, match="no such file"):
        ssh.put(host / "missing", as_guest(guest / "x"))
    (host / "tree").mkdir()
    (host / "tree/link").symlink_to("/etc")
    with pytest.raises(ConfigError, match="neither"):
        ssh.put(host / "tree", as_guest(guest / "x"))
    with pytest.raises(ConfigError):
        ssh.get(as_guest(guest / "file"), host / "tree")
    (host / "taken").write_text("x")
    with pytest.raises(ConfigError):
        ssh.get(as_guest(guest / "file"), host / "taken/below")


def test_a_target_that_the_guest_refuses_is_a_transport_error(ssh: SshClient, guest: Path) -> None:
    (guest / "folder").mkdir()
    (guest / "file").touch()
    for target in (guest / "folder", guest / "file/below", Path("/proc/nothing/x")):
        with pytest.raises(TransportError):
            ssh.put(b"x", as_guest(target))
