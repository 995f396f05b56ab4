"""Reads run directories back, also those of runs that were cut off."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from deskfork.core.errors import ConfigError
from deskfork.records.lock import RunLock
from deskfork.records.paths import AttemptPaths, RunPaths
from deskfork.records.trajectory import StepRecord
from deskfork.records.trial import TrialResult

_ATTEMPT = "attempt-"


@dataclass(frozen=True)
class AttemptRecord:
    """One attempt as it lies on disk."""

    task: str
    agent: str
    repeat: int
    attempt: int
    paths: AttemptPaths
    result: TrialResult | None
    """None when the attempt never ended: its process was killed, or its disk was full."""


@dataclass(frozen=True)
class RunRecords:
    """One run as it lies on disk."""

    paths: RunPaths
    lock: RunLock | None
    """None when the run was cut off before its first trial."""
    attempts: tuple[AttemptRecord, ...]
    """All of them, by task, agent, repeat and attempt."""

    def trials(self) -> tuple[AttemptRecord, ...]:
        """Return the last attempt of each trial, which is the one that counts."""
        last = {(a.task, a.agent, a.repeat): a for a in self.attempts}
        return tuple(last.values())


def find_run(folder: Path) -> RunPaths:
    """Return the paths of a run directory.

    Raises:
        ConfigError: It is none.
    """
    paths = RunPaths(folder.absolute())
    if not paths.trials.is_dir() or not paths.config.is_file():
        raise ConfigError(
            f"{folder} is no run directory: it has no run.yaml or no trials; pass a directory that `run start` made"
        )
    return paths


def read_run(folder: Path) -> RunRecords:
    """Read a run directory.

    Raises:
        ConfigError: It is none, or a file in it is corrupt; the message names the file.
    """
    paths = find_run(folder)
    attempts = [_read_attempt(found) for found in _attempt_folders(paths.trials)]
    attempts.sort(key=lambda a: (a.task, a.agent, a.repeat, a.attempt))
    return RunRecords(paths, read_lock(paths.lock), tuple(attempts))


def read_trajectory(paths: AttemptPaths) -> tuple[StepRecord, ...]:
    """Read an attempt's steps; a last line that was cut off by a kill is left out.

    Raises:
        ConfigError: A line is corrupt.
    """
    # As bytes: a line may be cut off within a character.
    lines = _read(paths.trajectory).split(b"\n")
    steps: list[StepRecord] = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            steps.append(StepRecord.model_validate_json(line))
        except ValidationError as error:
            raise ConfigError(f"{paths.trajectory}, line {number}: no step record: {_first(error)}") from error
    return tuple(steps)


def read_lock(path: Path) -> RunLock | None:
    """Read a run's lock.json; None when there is none.

    Raises:
        ConfigError: It is corrupt.
    """
    if not path.exists():
        return None
    try:
        return RunLock.model_validate_json(_read(path))
    except ValidationError as error:
        raise ConfigError(f"{path} is corrupt: {_first(error)}") from error


def _attempt_folders(trials: Path) -> Iterator[Path]:
    # By scandir: a run may have ten thousand of them, and `Path.glob` takes ten times as long.
    for task in _folders(trials):
        for agent in _folders(task):
            for repeat in _folders(agent):
                yield from (Path(found) for found in _folders(repeat) if found.name.startswith(_ATTEMPT))


def _folders(parent: "Path | os.DirEntry[str]") -> list["os.DirEntry[str]"]:
    with os.scandir(parent) as entries:
        return [entry for entry in entries if entry.is_dir()]


def _read_attempt(folder: Path) -> AttemptRecord:
    paths = AttemptPaths(folder)
    repeat, attempt = folder.parent.name, folder.name.removeprefix(_ATTEMPT)
    if not (repeat.isdecimal() and attempt.isdecimal()):
        raise ConfigError(
            f"{folder}: not named by repeat and attempt, so no trial of a run; move it out of the run directory"
        )
    try:
        result = TrialResult.model_validate_json(paths.result.read_bytes())
    except FileNotFoundError:
        # An agent's or task's name that is no folder name stands here in its folder form.
        return AttemptRecord(folder.parents[2].name, folder.parents[1].name, int(repeat), int(attempt), paths, None)
    except OSError as error:
        raise ConfigError(f"{paths.result} cannot be read: {error}") from error
    except ValidationError as error:
        raise ConfigError(f"{paths.result} is corrupt: {_first(error)}") from error
    return AttemptRecord(result.task, result.agent, result.repeat, result.attempt, paths, result)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def _first(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in found["loc"])
    return f"{place}: {found['msg']}" if place else json.dumps(found["msg"])
