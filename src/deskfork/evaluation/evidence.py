"""What an evaluation read, kept so that it can be judged again without the machine."""

import hashlib
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from deskfork.core.atomic import write_atomic
from deskfork.core.config import StrictModel
from deskfork.core.errors import EvaluationError, InfraError

INDEX_NAME = "evidence.json"
MAX_INDEX_BYTES = 4 * 1024 * 1024
MAX_FILE_BYTES = 32 * 1024 * 1024
"""A larger answer is none: nothing that a task asks for comes near."""


class KeptFile(StrictModel):
    """One file beside the index."""

    name: str = Field(pattern=r"^[^/\x00]{1,255}$")
    size_bytes: int = Field(ge=0)
    sha256: str


class Evidence(StrictModel):
    """What was read for one check."""

    check: int = Field(ge=1)
    """Its place among the evaluator's checks, from 1."""
    source: str
    """What was read: a path in the guest, a script, the browser."""
    state: Literal["read", "missing", "unread"]
    """`missing` is a fact about the guest and scores 0; `unread` is our failure and scores nothing."""
    file: KeptFile | None = None
    """With `read`."""
    also: tuple[KeptFile, ...] = ()
    """Kept beside it for whoever looks into the trial; not judged."""
    detail: str = ""
    """One sentence, for what was not read."""

    def content(self, directory: Path) -> bytes:
        """Return what was read.

        Raises:
            EvaluationError: The file is gone from `directory`, or is not what was kept.
        """
        assert self.file is not None, "asked for what was not read"
        path = directory / self.file.name
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise EvaluationError(f"evidence {path} cannot be read: {error.strerror}") from error
        if hashlib.sha256(raw).hexdigest() != self.file.sha256:
            raise EvaluationError(f"evidence {path} is not what the evaluation read: it was changed afterwards")
        return raw


class EvidenceIndex(StrictModel):
    """All that one evaluation read."""

    format: Literal[1] = 1
    task: str
    evidence: tuple[Evidence, ...]


def keep(path: Path) -> KeptFile:
    """Describe a file that was just written.

    Raises:
        InfraError: It cannot be read.
    """
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return KeptFile(name=path.name, size_bytes=path.stat().st_size, sha256=digest)
    except OSError as error:
        raise InfraError(f"evidence {path} cannot be read back: {error.strerror}") from error


def write_evidence(directory: Path, index: EvidenceIndex) -> None:
    """Write the index.

    Raises:
        InfraError: It could not be written.
    """
    try:
        write_atomic(directory / INDEX_NAME, index.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise InfraError(f"{directory / INDEX_NAME} could not be written: {error.strerror}") from error


def read_evidence(directory: Path) -> EvidenceIndex:
    """Read the index of a finished evaluation.

    Raises:
        EvaluationError: There is none, or it is broken.
    """
    path = directory / INDEX_NAME
    try:
        if path.stat().st_size > MAX_INDEX_BYTES:
            raise EvaluationError(f"{path} is larger than {MAX_INDEX_BYTES // 2**20} MiB")
        return EvidenceIndex.model_validate_json(path.read_bytes())
    except OSError as error:
        raise EvaluationError(f"no evidence was kept: {path}: {error.strerror}") from error
    except ValidationError as error:
        raise EvaluationError(
            f"{path} is broken ({error.error_count()} errors): the trial must be run again"
        ) from error
