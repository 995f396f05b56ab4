"""The fake provider's file tree and programs: a host folder for the guest's files, host processes for its programs."""

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from deskfork.core.errors import GuestFileError, TransportError
from deskfork.core.types import CommandResult
from deskfork.sandbox.base import GUEST_HOME
from deskfork.sandbox.fake.kernel import MARK

MAX_OUTPUT_BYTES = 4 * 1024 * 1024
_KILL_WAIT_S = 10.0


@dataclass(frozen=True)
class FakeMachine:
    """One folder that stands for a guest's root filesystem."""

    sandbox_id: str
    root: Path

    @property
    def home(self) -> Path:
        """The host folder that is the guest user's home."""
        return self.host_path(GUEST_HOME)

    def create(self) -> None:
        """Make the folders that the guest contract promises."""
        for folder in (self.home / "Desktop", self.home / "Downloads", self.root / "tmp"):
            folder.mkdir(parents=True)

    def host_path(self, path: PurePosixPath) -> Path:
        """Return where the guest path `path` lies on the host; a relative one starts at the guest user's home."""
        inside = os.path.normpath(GUEST_HOME / path).lstrip("/")
        return self.root / inside

    def env(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a guest program: nothing of the host's own gets in, so no keys and no display."""
        return {
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PATH": f"{Path(sys.executable).parent}:{os.defpath}:/usr/local/bin:/usr/sbin:/sbin",
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(self.root / "tmp"),
            "TZ": "UTC",
            "USER": "user",
            **(extra or {}),
            MARK: self.sandbox_id,
        }

    def run(
        self, argv: list[str], *, env: Mapping[str, str] | None, cwd: PurePosixPath | None, timeout_s: float
    ) -> CommandResult:
        """Run one host program as if it were in the guest; see `Guest.exec`."""
        started = time.monotonic()
        folder = self.host_path(cwd or GUEST_HOME)
        if not folder.is_dir():
            return CommandResult(tuple(argv), 1, "", f"cd: {cwd}: No such file or directory\n", 0.0)
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            try:
                process = subprocess.Popen(
                    [self._argument(argument) for argument in argv],
                    env=self.env(env),
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
            except OSError as exc:
                exit_code = 127 if isinstance(exc, FileNotFoundError) else 126
                return CommandResult(tuple(argv), exit_code, "", f"{argv[0]}: {exc.strerror}\n", 0.0)
            timed_out = False
            try:
                code = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait(_KILL_WAIT_S)
            if timed_out:
                code = -1
            elif code < 0:
                code = 128 - code  # as a shell reports a signal
            return CommandResult(tuple(argv), code, _text(stdout), _text(stderr), time.monotonic() - started, timed_out)

    def put(self, source: Path | bytes, target: PurePosixPath) -> None:
        """Copy into the guest; see `Guest.put`."""
        place = self.host_path(target)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(source, bytes):
                place.write_bytes(source)
            elif source.is_dir():
                shutil.copytree(source, place, dirs_exist_ok=True)
            elif place.is_dir():
                raise IsADirectoryError(f"{target} is a directory")
            else:
                shutil.copy(source, place)
        except (OSError, shutil.Error) as exc:
            raise TransportError(f"{self.sandbox_id}: could not put {target}: {exc}") from exc

    def get(self, source: PurePosixPath, target: Path, max_bytes: int) -> None:
        """Copy out of the guest; see `Guest.get`."""
        place = self.host_path(source)
        if not place.exists() or not place.resolve().is_relative_to(self.root.resolve()):
            raise GuestFileError(f"{self.sandbox_id}: no {source} in the guest")
        if not place.is_dir() and not place.is_file():
            raise GuestFileError(f"{self.sandbox_id}: {source} is neither a file nor a directory")
        size = tree_bytes(place)
        if size > max_bytes:
            raise GuestFileError(f"{self.sandbox_id}: {source} has {size} bytes, more than the {max_bytes} allowed")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if place.is_dir():
                shutil.copytree(place, target, dirs_exist_ok=True, ignore=_no_regular_files)
            else:
                shutil.copyfile(place, target)
        except (OSError, shutil.Error) as exc:
            raise TransportError(f"{self.sandbox_id}: could not get {source}: {exc}") from exc

    def _argument(self, argument: str) -> str:
        """Map a program argument that is a guest path: one under the home, or one that exists in the guest's tree."""
        if not argument.startswith("/"):
            return argument
        path = PurePosixPath(argument)
        mapped = self.host_path(path)
        return str(mapped) if path.is_relative_to(GUEST_HOME) or mapped.exists() else argument


def copy_tree(source: Path, target: Path) -> None:
    """Make the contents of the folder `target` equal those of `source`; `target` itself stays the same folder."""
    target.mkdir(parents=True, exist_ok=True)
    kept = set()
    for entry in target.iterdir():
        twin = source / entry.name
        if entry.is_dir() and not entry.is_symlink() and twin.is_dir() and not twin.is_symlink():
            kept.add(entry.name)
        elif entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    for entry in source.iterdir():
        if entry.is_symlink():
            (target / entry.name).symlink_to(entry.readlink())
        elif entry.is_dir():
            copy_tree(entry, target / entry.name)
        elif entry.is_file():
            shutil.copy2(entry, target / entry.name)


def tree_bytes(place: Path) -> int:
    """Return the bytes of the regular files at or below `place`, links not followed."""
    if place.is_file():
        return place.stat().st_size
    sizes = (entry.lstat() for entry in place.rglob("*"))
    return sum(found.st_size for found in sizes if stat.S_ISREG(found.st_mode))


def locked(path: Path, *, create: bool = True) -> IO[str]:
    """Open `path` and hold it locked until it is closed, or its process ends.

    Raises:
        OSError: Another process holds it, or it is missing and `create` is off.
    """
    stream = path.open("w" if create else "r")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        stream.close()
        raise
    return stream


def _no_regular_files(folder: str, names: Iterable[str]) -> set[str]:
    """Return which entries are links, devices and the like; a link could lead out of the guest's tree."""
    modes = {name: (Path(folder) / name).lstat().st_mode for name in names}
    return {name for name, mode in modes.items() if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)}


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read(MAX_OUTPUT_BYTES).decode(errors="replace")
