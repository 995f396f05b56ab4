"""Reading what is to be judged: the guest's state, and what it is compared with. No judging here."""

from dataclasses import dataclass
from pathlib import Path

from deskfork.core.errors import EvaluationError, GuestFileError
from deskfork.evaluation.metrics.notebooks import MAX_NOTEBOOK_BYTES
from deskfork.evaluation.metrics.tables import MAX_CSV_BYTES
from deskfork.sandbox.base import Guest
from deskfork.tasks.schema import GuestFile, HostFile, ScriptOutput

MAX_FILE_BYTES = max(MAX_CSV_BYTES, MAX_NOTEBOOK_BYTES)
MAX_OUTPUT_CHARS = 4 * 1024 * 1024
FETCH_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Missing:
    """The guest has nothing that could be judged: a fact about its state, which scores 0."""

    detail: str


def read_guest_file(getter: GuestFile, guest: Guest, kept: Path) -> bytes | Missing:
    """Fetch a file of the guest to the host path `kept`, and return what is in it.

    Raises:
        InfraError: The guest could not be asked.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/getters/file.py, `get_vm_file` (a missing file is None there).
    """
    try:
        guest.get(getter.path, kept, max_bytes=MAX_FILE_BYTES, timeout_s=FETCH_TIMEOUT_S)
    except GuestFileError as error:
        return Missing(f"no such file in the guest, or none that can be judged: {error}")
    if kept.is_symlink() or not kept.is_file():
        return Missing(f"no such file in the guest: {getter.path} is no regular file")
    return kept.read_bytes()


def read_script_output(getter: ScriptOutput, guest: Guest, root: Path, kept: Path) -> str | Missing:
    """Run a script of the task in the guest, keep what it printed at the host path `kept`, and return its stdout.

    As upstream, what counts is the stdout, whatever the exit code.

    Raises:
        InfraError: The guest could not be asked.
        EvaluationError: The script is missing on the host, or did not end in time.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/getters/general.py, `get_vm_script_output`.
    """
    source = root / getter.source
    try:
        script = source.read_bytes()
    except OSError as error:
        raise EvaluationError(f"evaluation script {source} cannot be read: {error.strerror}") from error
    guest.put(script, getter.target)
    result = guest.exec(["/bin/bash", str(getter.target)], timeout_s=getter.timeout_s)
    kept.write_text(result.stdout, encoding="utf-8", errors="backslashreplace")
    if result.stderr:
        kept.with_name(f"{kept.name}.stderr").write_text(result.stderr, encoding="utf-8", errors="backslashreplace")
    if result.timed_out:
        raise EvaluationError(f"evaluation script {source.name} did not end within {getter.timeout_s:.0f} s")
    if len(result.stdout) > MAX_OUTPUT_CHARS:
        return Missing(f"evaluation script {source.name} printed more than {MAX_OUTPUT_CHARS // 1024**2} MiB")
    return result.stdout


def read_host_file(getter: HostFile, root: Path) -> bytes:
    """Return what is in a gold file.

    Raises:
        EvaluationError: It is missing or too large.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/getters/file.py, `get_local_file`.
    """
    path = root / getter.path
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise EvaluationError(f"gold file {path} is larger than {MAX_FILE_BYTES // 1024**2} MiB")
        return path.read_bytes()
    except OSError as error:
        raise EvaluationError(f"gold file {path} cannot be read: {error.strerror}") from error
