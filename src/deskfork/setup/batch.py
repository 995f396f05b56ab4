"""What the host need not look at is done in the guest in one go: one transfer, one session, programs in their order.

Each session costs an emulated guest that was just forked 0.1 to 0.3 s of work.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

from deskfork.core.errors import InfraError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.base import Guest
from deskfork.setup.command import described, limited
from deskfork.setup.files import FileBatch

# Prints when each program starts, and when the last has ended; what they print themselves goes to stderr. `!` marks
# those that must succeed.
RUN = (
    'while [ $# -gt 0 ]; do mark=$1 count=$2; shift 2; echo "$EPOCHREALTIME"; '
    '"${@:1:count}" </dev/null >&2 || { code=$?; [ "$mark" = ! ] && exit "$code"; }; shift "$count"; done; '
    'echo "$EPOCHREALTIME"'
)


class StepFailed(Exception):
    """A step that was left for later failed; tells which one."""

    def __init__(self, place: int, error: InfraError) -> None:
        super().__init__(str(error))
        self.place = place
        self.error = error


@dataclass(frozen=True)
class _Program:
    place: int
    argv: tuple[str, ...]
    timeout_s: float
    must_succeed: bool


@dataclass
class Batch(AbstractContextManager["Batch"]):
    """Collects files and programs until the host wants to see what came of them."""

    guest: Guest
    durations_s: dict[int, float] = field(default_factory=dict)
    """Seconds that each step took, as far as it is done."""

    def __post_init__(self) -> None:
        self._files = FileBatch(self.guest)
        self._targets: dict[PurePosixPath, int] = {}
        self._programs: list[_Program] = []

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove what was staged on the host."""
        self._files.__exit__(kind, error, trace)

    def add_file(
        self, place: int, source: Path, target: PurePosixPath, deadline: Deadline, *, may_be_early: bool = False
    ) -> None:
        """Have `source` at `target` before any program that is added later.

        Args:
            place: Which step wants it.
            source: Host file.
            target: Guest path.
            deadline: For what has to be done before.
            may_be_early: Whether it may be there before programs that were added already have run.

        Raises:
            StepFailed: What had to be done before failed.
        """
        if target in self._targets or (self._programs and not may_be_early):
            self.flush(deadline)
        self._files.add(source, target)
        self._targets[target] = place

    def add_program(self, place: int, argv: tuple[str, ...], *, timeout_s: float, must_succeed: bool = True) -> None:
        """Run a program after all that was added before it."""
        self._programs.append(_Program(place, argv, timeout_s, must_succeed))

    def flush(self, deadline: Deadline) -> None:
        """Do what was added since the last flush.

        Raises:
            StepFailed: A file could not be sent, or a program that must succeed failed, overran or was not started
                before the deadline.
        """
        programs, self._programs = self._programs, []
        if self._targets:
            place, self._targets = max(self._targets.values()), {}
            started_s = deadline.remaining_s
            try:
                self._files.flush(deadline)
            except InfraError as error:
                raise StepFailed(place, error) from error
            self._took({place: started_s - deadline.remaining_s})
        if programs:
            self._run(programs, deadline)

    def _run(self, programs: list[_Program], deadline: Deadline) -> None:
        if deadline.has_passed:
            raise StepFailed(programs[0].place, limited(deadline))
        limit_s = min(sum(program.timeout_s for program in programs), deadline.remaining_s)
        words = [
            word
            for program in programs
            for word in ("!" if program.must_succeed else "?", str(len(program.argv)), *program.argv)
        ]
        try:
            result = self.guest.exec(["bash", "-c", RUN, "set-up", *words], timeout_s=limit_s)
        except InfraError as error:
            raise StepFailed(programs[0].place, error) from error
        times = _times(result.stdout)
        for program, begun_s, ended_s in zip(programs, times, times[1:], strict=False):
            self._took({program.place: ended_s - begun_s})
        if result.timed_out or result.exit_code != 0:
            failed = programs[min(max(len(times) - 1, 0), len(programs) - 1)]
            raise StepFailed(failed.place, described(failed.argv, result, limit_s))

    def _took(self, seconds: Mapping[int, float]) -> None:
        for place, duration_s in seconds.items():
            self.durations_s[place] = self.durations_s.get(place, 0.0) + max(0.0, duration_s)


def _times(printed: str) -> list[float]:
    times = []
    for line in printed.split():
        try:
            times.append(float(line))
        except ValueError:
            break
    return times
