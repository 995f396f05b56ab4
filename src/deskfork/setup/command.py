"""Running one guest command for a set-up step: its failure is our failure, never the agent's."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from deskfork.core.errors import InfraError
from deskfork.core.types import CommandResult
from deskfork.core.waiting import Deadline
from deskfork.sandbox.base import Guest

MAX_SHOWN_CHARS = 300


def run_command(
    guest: Guest, argv: list[str], deadline: Deadline, *, timeout_s: float = 60.0, cwd: PurePosixPath | None = None
) -> str:
    """Run `argv` in the guest and return what it printed.

    Args:
        guest: Where to run it.
        argv: Program and arguments.
        deadline: End of the whole set-up.
        timeout_s: Seconds this command may take, if the deadline leaves as many.
        cwd: Working directory, the user's home by default.

    Raises:
        InfraError: It failed, overran, or the deadline has passed.
    """
    if deadline.has_passed:
        raise limited(deadline)
    limit_s = min(timeout_s, deadline.remaining_s)
    result = guest.exec(argv, cwd=cwd, timeout_s=limit_s)
    if result.timed_out or result.exit_code != 0:
        raise described(argv, result, limit_s)
    return result.stdout


def limited(deadline: Deadline) -> InfraError:
    """Return the error for a command that was not started any more."""
    return InfraError(f"no time was left of the set-up's {deadline.timeout_s:.0f} s")


def described(argv: Sequence[str], result: CommandResult, limit_s: float) -> InfraError:
    """Return the error for a command that failed or overran."""
    if result.timed_out:
        return InfraError(f"{argv[0]} did not end within {limit_s:.0f} s{_said(result.stderr)}")
    return InfraError(f"{argv[0]} ended with exit code {result.exit_code}{_said(result.stderr or result.stdout)}")


def _said(text: str) -> str:
    shown = " ".join(text.split())
    return f", saying: {shown[-MAX_SHOWN_CHARS:]}" if shown else ""
