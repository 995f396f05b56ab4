"""Where images are built: stages kept under the key of what went into them, programs with a log and a deadline."""

import contextlib
import fcntl
import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from deskfork.core.errors import ConfigError, InfraError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.images.seal import is_intact, seal

LOCK_TIMEOUT_S = 3600.0
KILL_TIMEOUT_S = 10.0
_COMPLAINT = re.compile(r"^(E:|ERROR|error|fatal|[\w./-]+: )", re.IGNORECASE)


@dataclass(frozen=True)
class Progress:
    """One line of news from a build."""

    stage: str
    fraction: float | None
    """How much of the whole build is done, 0 to 1, if known."""
    line: str


@dataclass(frozen=True)
class Stage:
    """One step of a build; its result is a folder, kept as long as `key` is wanted."""

    name: str
    key: str
    """Hash of everything that goes into it."""
    make: Callable[["Workshop", Path], None]
    """Called with an empty folder to fill."""
    weight_s: float
    """Roughly how long it takes."""
    timeout_s: float


class Workshop:
    """One build at a time in one cache directory; what is unfinished lies in a folder that goes away with it."""

    def __init__(self, cache_dir: Path, on_progress: Callable[[Progress], None]) -> None:
        """Build below `cache_dir` and tell `on_progress` about it."""
        self._stages = cache_dir / "stages"
        self._logs = cache_dir / "logs"
        self._on_progress = on_progress
        self._stage = "prepare"
        self._fraction = 0.0
        self._deadline = Deadline.after(0.0)
        self._log: IO[bytes] | None = None

    @contextlib.contextmanager
    def lock(self, *, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
        """Keep other builds out of this cache, and clear away what an interrupted one left.

        Args:
            timeout_s: How long to wait for a build that is running.

        Raises:
            InfraError: Another build did not end in time.
        """
        self._stages.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        with (self._stages / ".lock").open("w") as stream:
            if not _try_lock(stream):
                self.say("another build is running in this cache: waiting for it")
                if not wait_until(lambda: _try_lock(stream), Deadline.after(timeout_s), interval_s=1.0):
                    raise InfraError(f"{self._stages}: another build still runs after {timeout_s:.0f} s")
            for left_over in self._stages.glob(".*.partial"):
                shutil.rmtree(left_over)
            yield

    def say(self, line: str) -> None:
        """Report one line."""
        self._on_progress(Progress(self._stage, self._fraction, line))

    def artifact(self, stage: Stage) -> Path:
        """Return the folder in which the result of `stage` lies, or would lie."""
        return self._stages / f"{stage.name}-{stage.key[:16]}"

    def ensure(self, stages: Sequence[Stage]) -> None:
        """Make the artifacts of `stages`, in this order, that are not there undamaged.

        Raises:
            ConfigError: A program is missing.
            InfraError: A stage failed or overran its time.
        """
        total_s = sum(stage.weight_s for stage in stages)
        done_s = 0.0
        for stage in stages:
            self._stage, self._fraction = stage.name, done_s / total_s
            target = self.artifact(stage)
            if target.exists() and not is_intact(target):
                self.say("what an earlier build left is damaged: building it again")
                shutil.rmtree(target)
            if target.exists():
                self.say("kept from an earlier build")
            else:
                self._make(stage, target)
            done_s += stage.weight_s
        self._fraction = 1.0

    def _make(self, stage: Stage, target: Path) -> None:
        self._deadline = Deadline.after(stage.timeout_s)
        self.say("building")
        with self.work_folder() as work, self._log_path.open("wb") as self._log:
            result = work / "result"
            result.mkdir()
            stage.make(self, result)
            seal(result)
            for outdated in self._stages.glob(f"{stage.name}-*"):
                shutil.rmtree(outdated)
            result.rename(target)

    @contextlib.contextmanager
    def work_folder(self) -> Iterator[Path]:
        """Make a folder on the cache's file system that is removed again, with all in it."""
        work = Path(tempfile.mkdtemp(prefix=f".{self._stage}-", suffix=".partial", dir=self._stages))
        work.chmod(0o755)
        try:
            yield work
        finally:
            # Whatever cannot be removed now, the next build removes: it must not hide why this one failed.
            shutil.rmtree(work, ignore_errors=True)

    def kept_folder(self, name: str) -> Path:
        """Return a folder that stays when a build fails; who no longer needs it removes it."""
        folder = self._stages / name
        folder.mkdir(exist_ok=True)
        return folder

    def discard(self, stages: Sequence[Stage]) -> None:
        """Remove the artifacts of `stages`."""
        for stage in stages:
            if (artifact := self.artifact(stage)).exists():
                shutil.rmtree(artifact)

    @property
    def _log_path(self) -> Path:
        return self._logs / f"image-{self._stage}.log"

    def run(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> None:
        """Run a program to its end; its output goes to the log and to `on_progress`.

        Args:
            argv: Program and arguments.
            env: The whole environment of the program; ours if None.

        Raises:
            ConfigError: There is no such program.
            InfraError: It failed, or did not end before the stage's deadline.
        """
        command = [*_leash(), *argv]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=env,
                start_new_session=True,
            )
        except FileNotFoundError as exc:
            raise ConfigError(f"building images needs `setpriv` (Debian package util-linux): {exc}") from exc
        try:
            last = self._follow(process, argv[0])
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            process.wait(timeout=KILL_TIMEOUT_S)
            if process.stdout is not None:
                process.stdout.close()
        if process.returncode:
            raise InfraError(
                f"image stage {self._stage}: {Path(argv[0]).name} ended with {process.returncode}: {last} "
                f"(log: {self._log_path})"
            )

    def _follow(self, process: subprocess.Popen[bytes], program: str) -> str:
        """Pass output on until it ends; return the line that best tells what went wrong."""
        assert process.stdout is not None
        complaint = last = "no output"
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(self._deadline.remaining_s):
                    raise InfraError(
                        f"image stage {self._stage}: {Path(program).name} did not end within "
                        f"{self._deadline.timeout_s:.0f} s (log: {self._log_path})"
                    )
                block = os.read(process.stdout.fileno(), 65536)
                if self._log is not None:
                    self._log.write(block)
                *lines, rest = (rest + block).split(b"\n")
                for line in (raw.decode("utf-8", "replace").strip() for raw in lines):
                    if line:
                        self.say(line)
                        last = line
                        complaint = line if _COMPLAINT.match(line) else complaint
                if not block:
                    return complaint if complaint != "no output" else last


def _leash() -> list[str]:
    """Return what to run a program under, so that no descendant of it outlives this process or the program itself.

    mmdebstrap's children leave its process group; without a process namespace they go on in a folder that the
    next build clears away.
    """
    leash = ["setpriv", "--pdeathsig", "KILL"]
    if os.geteuid() == 0:
        leash += ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    return leash


def _try_lock(stream: IO[str]) -> bool:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
