"""What the command line answers with when something went wrong."""

import os
import signal
import traceback

from deskfork.core.errors import ConfigError, EvaluationError, GuestFileError, InfraError

UNEXPECTED = 1
REQUEST_WRONG = 2
INFRASTRUCTURE_FAILED = 3


def signal_exit_code(signal_number: int) -> int:
    """Return the exit code by which a shell tells that a signal ended a program."""
    return 128 + signal_number


def exit_code(error: BaseException) -> int:
    """Return the exit code that stands for `error`."""
    match error:
        case ConfigError():
            return REQUEST_WRONG
        case InfraError() | EvaluationError() | GuestFileError():
            return INFRASTRUCTURE_FAILED
        case KeyboardInterrupt():
            return signal_exit_code(signal.SIGINT)
        case _:
            return UNEXPECTED


def sentence(error: BaseException) -> str:
    """Return what stderr says of `error`: one line, or the traceback when DESKFORK_DEBUG is set to 1."""
    if os.environ.get("DESKFORK_DEBUG") == "1":
        return "".join(traceback.format_exception(error)).rstrip()
    if isinstance(error, KeyboardInterrupt):
        return "deskfork: cancelled"
    text = " ".join(str(error).split())
    if exit_code(error) == UNEXPECTED:
        return f"deskfork: unexpected {type(error).__name__}: {text}; DESKFORK_DEBUG=1 shows where"
    return f"deskfork: {text}"
