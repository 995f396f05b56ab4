"""Writes one attempt's folder while the trial goes on."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from deskfork.core.atomic import write_atomic
from deskfork.core.errors import ConfigError, InfraError
from deskfork.records.paths import AttemptPaths
from deskfork.records.screens import ScreenStore
from deskfork.records.trajectory import StepRecord
from deskfork.records.trial import TrialResult


class TrialRecorder:
    """Everything that one attempt leaves behind; every write that fails is an InfraError that names the file."""

    def __init__(self, paths: AttemptPaths) -> None:
        """Make the attempt's folder.

        Raises:
            ConfigError: It exists already: a result is never overwritten.
            InfraError: It cannot be made.
        """
        self.paths = paths
        self.steps: list[StepRecord] = []
        try:
            paths.root.mkdir(parents=True, exist_ok=False)
        except FileExistsError as error:
            raise ConfigError(f"{paths.root} exists already; an attempt is never overwritten") from error
        except OSError as error:
            raise InfraError(f"{paths.root}: could not be made: {error.strerror or error}") from error
        with _writing(paths.root):
            for folder in (paths.screens, paths.guest, paths.logs):
                folder.mkdir()
            self._trajectory = paths.trajectory.open("x", encoding="utf-8")
        self.screens = ScreenStore(paths.screens)

    def add_step(self, step: StepRecord) -> None:
        """Append one line to the trajectory; it is on its way to disk when this returns."""
        self.steps.append(step)
        with _writing(self.paths.trajectory):
            self._trajectory.write(step.model_dump_json() + "\n")
            self._trajectory.flush()

    def write_messages(self, conversation_json: str) -> None:
        """Write the model conversation."""
        with _writing(self.paths.messages):
            write_atomic(self.paths.messages, conversation_json)

    def log(self, line: str) -> None:
        """Append a line with the time to logs/trial.log."""
        path = self.paths.logs / "trial.log"
        with _writing(path), path.open("a", encoding="utf-8") as stream:
            stream.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {line}\n")

    def close(self) -> None:
        """Drain what is pending and close the trajectory.

        Raises:
            InfraError: Something could not be written.
        """
        try:
            self.screens.close()
        finally:
            with _writing(self.paths.trajectory), closing(self._trajectory):
                if self.steps and not self._trajectory.closed:
                    # A result that survives a power cut must not stand beside steps that did not.
                    self._trajectory.flush()
                    os.fsync(self._trajectory.fileno())

    def write_result(self, result: TrialResult) -> None:
        """Write result.json, whole or not at all; to be called last, once."""
        with _writing(self.paths.result):
            if self.paths.result.exists():
                raise ConfigError(f"{self.paths.result} exists already; a result is never overwritten")
            write_atomic(self.paths.result, result.model_dump_json(indent=2) + "\n")

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the recorder."""
        self.close()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        # ValueError: a write after close, or text that is no UTF-8
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InfraError(f"{path}: could not be written: {reason}") from error
