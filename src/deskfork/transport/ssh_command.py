"""Quotes a program's arguments, environment and working directory for the shell that sshd puts in front of it."""

import re
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath

from deskfork.core.errors import ConfigError

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def command_line(argv: list[str], env: Mapping[str, str], cwd: PurePosixPath | None, marker: str) -> str:
    """Return what the user's shell in the guest is given to run one program.

    Args:
        argv: Program and arguments; each reaches the program as it is.
        env: Added to the user's environment.
        cwd: Working directory, or None for the one that sshd gives.
        marker: Printed first, followed by the process id of the shell, which leads the command's session.

    Raises:
        ConfigError: No program can be given these.
    """
    if not argv or not argv[0] or "=" in argv[0]:
        raise ConfigError(f"cannot run {argv!r}: no program name")
    if bad := [name for name in env if not _ENV_NAME.fullmatch(name)]:
        raise ConfigError(f"not a name for an environment variable: {bad[0]!r}")
    words = ["env"]
    if cwd is not None:
        words.append(f"--chdir={cwd}")
    words += ["--", *(f"{name}={value}" for name, value in env.items()), *argv]
    if any("\0" in word for word in words):
        raise ConfigError(f"cannot run {argv[0]!r}: a NUL byte in its arguments or environment")
    # The shell stays, so that a program's death by a signal becomes an exit code; what a start-up file of the user
    # prints comes before the marker and is dropped.
    return f"echo {marker}$$; {shlex.join(words)}; exit $?"
