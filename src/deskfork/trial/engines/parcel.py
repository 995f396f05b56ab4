"""A trial on its way to another machine, and its records on their way back."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from deskfork.core.atomic import write_atomic
from deskfork.core.errors import ConfigError, InfraError
from deskfork.records.paths import AttemptPaths
from deskfork.records.trial import TrialResult
from deskfork.tasks.schema import Task
from deskfork.tasks.steps import SupplyStep
from deskfork.trial.plan import TrialPlan
from deskfork.trial.policies import moved_script, script_of

_PIECE_BYTES = 2 * 2**20
_SCRIPTS = "scripts"


@dataclass(frozen=True)
class Parcel:
    """A trial with everything that it needs of the machine on which it was planned."""

    plan: TrialPlan
    """All paths in its task are relative."""
    files: dict[str, bytes]
    """Content of each file, by its path below the task's root."""


@dataclass(frozen=True)
class Piece:
    """A part of an attempt's folder."""

    path: str
    """Relative to the attempt's folder."""
    content: bytes | None
    """To be appended to the file; None for a folder."""


def pack(plan: TrialPlan) -> Parcel:
    """Take along every host file of a trial.

    Raises:
        ConfigError: One cannot be read.
    """
    task, files = plan.task, {}
    supplied = [step.source for step in task.setup if isinstance(step, SupplyStep)]
    text = task.model_dump_json(exclude={"root", "solution"})
    for number, path in enumerate(dict.fromkeys((*task.host_files(), *supplied))):
        name = str(path)
        if path.is_absolute():
            name = f"supplied/{number}/{path.name}"
            text = text.replace(json.dumps(str(path)), json.dumps(name))
        files[name] = _read(task.host_path(path))
    if script := script_of(plan.agent):
        files[f"{_SCRIPTS}/{script.name}"] = _read(script)
    packed = Task.model_validate({**json.loads(text), "root": "/"})
    return Parcel(replace(plan, task=packed, model_name=plan.model), files)


def unpack(parcel: Parcel, folder: Path) -> TrialPlan:
    """Write a parcel's files below `folder`, and return the trial as it can be run there.

    Raises:
        InfraError: They could not be written.
    """
    try:
        for name, content in parcel.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    except OSError as error:
        raise InfraError(f"{folder}: files of a trial could not be written: {error.strerror or error}") from error
    plan = parcel.plan
    script = script_of(plan.agent)
    agent = moved_script(plan.agent, folder / _SCRIPTS / script.name) if script else plan.agent
    return replace(plan, task=plan.task.model_copy(update={"root": folder}), agent=agent)


def pieces(folder: Path) -> Iterator[Piece]:
    """Yield everything in an attempt's folder, files in parts of at most 2 MiB; links are left out.

    Raises:
        InfraError: Something could not be read.
    """
    try:
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if path.is_symlink():
                continue
            if path.is_dir():
                yield Piece(name, None)
            elif path.is_file():
                with path.open("rb") as stream:
                    part = stream.read(_PIECE_BYTES)
                    yield Piece(name, part)
                    while part := stream.read(_PIECE_BYTES):
                        yield Piece(name, part)
    except OSError as error:
        raise InfraError(f"{folder}: records could not be read: {error.strerror or error}") from error


class Arrival:
    """Puts the pieces of an attempt's folder together; nobody sees it before it is whole."""

    def __init__(self, paths: AttemptPaths) -> None:
        self._paths = paths
        self._partial = paths.root.with_name(f".{paths.root.name}.partial")
        # Of a driver that was killed: no result was ever seen of it.
        shutil.rmtree(self._partial, ignore_errors=True)

    def add(self, piece: Piece) -> None:
        """Add a piece.

        Raises:
            InfraError: It could not be written, or its path leads out of the folder.
        """
        name = PurePosixPath(piece.path)
        if name.is_absolute() or ".." in name.parts:
            raise InfraError(f"{self._paths.root}: a node sent a file {piece.path!r}, which is not below it")
        place = self._partial / name
        try:
            if piece.content is None:
                place.mkdir(parents=True, exist_ok=True)
                return
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("ab") as stream:
                stream.write(piece.content)
        except OSError as error:
            raise InfraError(f"{place}: could not be written: {error.strerror or error}") from error

    def finish(self, result: TrialResult | None = None) -> None:
        """Show the attempt, with this result if the node sent none.

        Raises:
            InfraError: It could not be written.
        """
        kept = AttemptPaths(self._partial)
        try:
            if result is not None:
                self._partial.mkdir(parents=True, exist_ok=True)
                write_atomic(kept.result, result.model_dump_json(indent=2) + "\n")
            elif kept.result.exists():
                with kept.result.open("rb") as stream:
                    os.fsync(stream.fileno())
            if self._partial.exists():
                self._partial.rename(self._paths.root)
        except OSError as error:
            raise InfraError(f"{self._paths.root}: could not be written: {error.strerror or error}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
