"""Copies files and directories between host and guest over an open SFTP session.

The guest is hostile: names are checked, sizes and counts bounded, links never followed, and a host file appears
whole or not at all.
"""

import errno
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

import paramiko

from deskfork.core.errors import ConfigError, GuestFileError, TransportError

MAX_ENTRIES = 20_000
"""Files and directories that one `get` of a directory may bring."""
MAX_DEPTH = 64
_CHUNK_BYTES = 32768
_SERVER_SAID = frozenset({"Failure", "Bad message"})
"""What OpenSSH's sftp-server calls all other errors of the file system, a damaged one's or a name too long."""
_READ_BYTES = 255 * 1024
"""The most that OpenSSH's sftp-server returns at once."""


def put(client: paramiko.SFTPClient, source: Path | bytes, target: PurePosixPath) -> None:
    """Copy bytes, a host file or a host directory with all in it to `target`; missing parents are made.

    An existing file is replaced, an existing directory merged into. A file that its owner may execute stays so.

    Raises:
        ConfigError: `source` does not exist, or holds something that is neither file nor directory.
    """
    if isinstance(source, Path) and not source.exists():
        raise ConfigError(f"cannot copy {source} to the guest: there is no such file")
    _make_directories(client, target.parent)
    if isinstance(source, Path) and source.is_dir():
        _put_directory(client, source, target)
    else:
        _put_file(client, source, target)


def get(client: paramiko.SFTPClient, source: PurePosixPath, target: Path, max_bytes: int) -> None:
    """Copy the guest's file or directory `source` to the host path `target`, which is replaced if it is a file.

    In a directory only regular files and directories are copied: links, sockets, pipes and devices are left out.

    Raises:
        GuestFileError: There is no `source`, it is neither regular file nor directory, or holds over `max_bytes`.
        ConfigError: `target` cannot be written.
    """
    try:
        mode = client.lstat(str(source)).st_mode or 0
    except OSError as exc:
        raise _guest_error(source, exc) from exc
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise GuestFileError(f"guest {source} is neither a regular file nor a directory")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".deskfork-get-", dir=target.parent))
    except OSError as exc:
        raise ConfigError(f"cannot write {target}: {exc}") from exc
    try:
        fetch = _Fetch(client, max_bytes)
        if stat.S_ISDIR(mode):
            fetch.directory(source, scratch / "fetched", 0)
        else:
            fetch.file(source, scratch / "fetched")
        try:
            (scratch / "fetched").rename(target)
        except OSError as exc:
            raise ConfigError(f"cannot replace {target}: {exc}") from exc
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@dataclass
class _Fetch:
    client: paramiko.SFTPClient
    bytes_left: int
    entries_left: int = MAX_ENTRIES

    def directory(self, source: PurePosixPath, target: Path, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise GuestFileError(f"guest {source} lies more than {MAX_DEPTH} directories deep")
        target.mkdir()
        try:
            found = list(islice(self.client.listdir_iter(str(source), read_aheads=1), self.entries_left + 1))
        except UnicodeDecodeError as exc:
            raise GuestFileError(f"guest {source} holds a name that is not UTF-8") from exc
        except OSError as exc:
            raise _guest_error(source, exc) from exc
        self.entries_left -= len(found)
        if self.entries_left < 0:
            raise GuestFileError(f"guest {source}: more than {MAX_ENTRIES} files")
        for entry in found:
            name, mode = _checked_name(source, entry.filename), entry.st_mode or 0
            if stat.S_ISDIR(mode):
                self.directory(source / name, target / name, depth + 1)
            elif stat.S_ISREG(mode):
                self.file(source / name, target / name)

    def file(self, source: PurePosixPath, target: Path) -> None:
        try:
            with self.client.open(str(source), "rb") as stream, target.open("xb") as sink:
                found = stream.stat()
                size = found.st_size or 0
                if not stat.S_ISREG(found.st_mode or 0):
                    raise GuestFileError(f"guest {source} is not a regular file")
                if size > self.bytes_left:
                    raise GuestFileError(f"guest {source}: {size} bytes are more than may be copied")
                # Not `prefetch`: its thread dies with a traceback of its own when the session is closed early.
                stream.MAX_REQUEST_SIZE = _READ_BYTES
                while chunk := stream.read(_READ_BYTES):
                    self.bytes_left -= len(chunk)
                    if self.bytes_left < 0:
                        raise GuestFileError(f"guest {source} grew beyond what may be copied")
                    sink.write(chunk)
        except OSError as exc:
            raise _guest_error(source, exc) from exc


def _guest_error(source: PurePosixPath, exc: OSError) -> GuestFileError | TransportError:
    """Tell what the guest's file system said from a broken connection or a full host disk."""
    if exc.errno == errno.ENOENT:
        return GuestFileError(f"guest has no {source}")
    if exc.errno == errno.EACCES:
        return GuestFileError(f"guest {source} may not be read")
    if exc.errno is None and str(exc) in _SERVER_SAID:
        return GuestFileError(f"guest {source} could not be read there: {exc}")
    return TransportError(f"get {source}: {type(exc).__name__}: {exc}")


def _checked_name(folder: PurePosixPath, name: str | bytes) -> str:
    text = name if isinstance(name, str) else name.decode("utf-8", "replace")
    if not text or text in (".", "..") or "/" in text or "\0" in text or len(text.encode("utf-8", "replace")) > 255:
        raise GuestFileError(f"guest {folder} lists a file by an impossible name: {text[:60]!r}")
    return text


def _put_directory(client: paramiko.SFTPClient, source: Path, target: PurePosixPath) -> None:
    _make_directories(client, target)
    for child in sorted(source.iterdir()):
        if child.is_dir() and not child.is_symlink():
            _put_directory(client, child, target / child.name)
        elif child.is_file():
            _put_file(client, child, target / child.name)
        else:
            raise ConfigError(f"cannot copy {child} to the guest: neither a file nor a directory")


def _put_file(client: paramiko.SFTPClient, source: Path | bytes, target: PurePosixPath) -> None:
    with client.open(str(target), "wb") as stream:
        stream.set_pipelined(True)
        if isinstance(source, bytes):
            stream.write(source)
            size = len(source)
        else:
            with source.open("rb") as origin:
                shutil.copyfileobj(origin, stream, _CHUNK_BYTES)
                size = origin.tell()
    # Pipelined writes are acknowledged late, if at all: ask what has arrived.
    if client.stat(str(target)).st_size != size:
        raise TransportError(f"put {target}: not all of its {size} bytes arrived")
    if isinstance(source, Path) and os.access(source, os.X_OK):
        client.chmod(str(target), 0o755)


def _make_directories(client: paramiko.SFTPClient, path: PurePosixPath) -> None:
    try:
        if stat.S_ISDIR(client.stat(str(path)).st_mode or 0):
            return
        raise TransportError(f"put: guest {path} is not a directory")
    except FileNotFoundError:
        _make_directories(client, path.parent)
        client.mkdir(str(path))
