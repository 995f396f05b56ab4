"""All attempts of a run, looked through again cheaply: only what may have changed since is read."""

import json
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from pydantic import ValidationError

from deskfork.core.errors import ConfigError
from deskfork.records.lock import RunLock
from deskfork.records.paths import AttemptPaths, RunPaths, folder_name
from deskfork.records.reader import read_lock
from deskfork.records.trial import TrialResult
from deskfork.viewer.desktop import sandbox_of
from deskfork.viewer.owner import owned_since
from deskfork.viewer.rows import TrialRow, ended_row
from deskfork.viewer.visible import one_line

_FRESH_NS = 2_000_000_000
"""A folder that changed so shortly before it was read may change again without a newer time."""
_NUMBER = re.compile(r"[0-9]{1,6}")

Trial = tuple[str, str, int]


@dataclass
class _Folder:
    changed_ns: int
    read_ns: int
    within: tuple[Path, ...]


@dataclass
class _Attempt:
    """One attempt, as far as it has got."""

    paths: AttemptPaths
    trial: Trial
    number: int
    row: TrialRow
    sandbox: str = ""
    read_bytes: int = 0
    """Of the trajectory, lines counted."""
    result_ns: int = 0
    """When the result that the row tells of was written."""


class RunIndex:
    """The attempts of one run directory, by key: their folder below `trials`, with slashes between."""

    def __init__(self, folder: Path) -> None:
        """Read the run.

        Raises:
            ConfigError: It is no run directory, or its lock.json is corrupt.
        """
        self.paths = RunPaths(folder.absolute())
        if not self.paths.trials.is_dir() or not self.paths.config.is_file():
            raise ConfigError(f"{folder} is no run directory: it has no run.yaml or no trials")
        self.lock: RunLock | None = None
        self.version = 0
        """Grows with each change."""
        self._folders: dict[Path, _Folder] = {}
        self._attempts: dict[str, _Attempt] = {}
        self._trials: dict[Trial, list[_Attempt]] = {}
        self._labels: dict[str, str] = {}
        self._reading = Lock()
        self.refresh()

    def refresh(self) -> int:
        """Read what has changed, and return the version.

        Raises:
            ConfigError: The lock.json is corrupt.
        """
        with self._reading:
            if self.lock is None and (lock := read_lock(self.paths.lock)) is not None:
                self.lock = lock
                names = [*lock.tasks, *(str(agent.get("name", "")) for agent in lock.agents)]
                self._labels = {folder_name(name): name for name in names}
            has_changed = self._find_new()
            growing = [attempt for attempt in self._attempts.values() if attempt.row.state != "ended"]
            owned = owned_since(self.paths) if growing else None
            for attempt in growing:
                before = attempt.row
                attempt.row = self._read(attempt, owned)
                has_changed |= attempt.row != before
            self.version += has_changed
            return self.version

    def rows(self) -> list[TrialRow]:
        """Return a row for each trial: that of its last attempt, which is the one that counts."""
        with self._reading:
            lasts = [(attempts[-1].row, len(attempts)) for attempts in self._trials.values()]
        return [row if count == 1 else row.model_copy(update={"attempts": count}) for row, count in lasts]

    def attempt(self, key: str) -> tuple[TrialRow, AttemptPaths, str]:
        """Return an attempt's row, place and sandbox.

        Raises:
            ConfigError: There is none of that key.
        """
        with self._reading:
            found = self._attempts.get(key)
        if found is None:
            raise ConfigError("this run has no such trial")
        return found.row, found.paths, found.sandbox

    def look_again(self, keys: list[str]) -> None:
        """Read results again that have been written anew, as by `run regrade --apply`."""
        with self._reading:
            for attempt in (self._attempts[key] for key in keys):
                if attempt.row.state == "ended" and attempt.result_ns != _changed_ns(attempt.paths.result):
                    attempt.row = self._read(attempt, None)

    def siblings(self, key: str) -> list[str]:
        """Return the keys of all attempts at the same trial, in order."""
        with self._reading:
            found = self._attempts.get(key)
            return [_key(other.paths.root) for other in self._trials[found.trial]] if found else []

    def _find_new(self) -> bool:
        count = len(self._attempts)
        for task in self._within(self.paths.trials)[0]:
            for agent in self._within(task)[0]:
                for repeat in self._within(agent)[0]:
                    attempts, has_read = self._within(repeat)
                    # Of many thousands, next to none has changed since the last time.
                    if has_read and _NUMBER.fullmatch(repeat.name):
                        self._add(attempts)
        return len(self._attempts) > count

    def _add(self, folders: tuple[Path, ...]) -> None:
        for folder in folders:
            key, number = _key(folder), folder.name.removeprefix("attempt-")
            if key in self._attempts or number == folder.name or not _NUMBER.fullmatch(number):
                continue
            task, agent, repeat, _ = key.split("/")
            row = TrialRow(
                key=key,
                # A name that is no folder's name stands there in another form.
                task=one_line(self._labels.get(task, task)),
                agent=one_line(self._labels.get(agent, agent)),
                repeat=int(repeat),
                attempts=1,
                state="unfinished",
                status="unfinished",
            )
            made = _Attempt(AttemptPaths(folder), (task, agent, int(repeat)), int(number), row)
            self._attempts[key] = made
            self._trials.setdefault(made.trial, []).append(made)
            self._trials[made.trial].sort(key=lambda attempt: attempt.number)

    def _within(self, folder: Path) -> tuple[tuple[Path, ...], bool]:
        """Return the folders in a folder, and whether it was read for that, which is done only if it has changed."""
        try:
            changed_ns = folder.stat().st_mtime_ns
            known = self._folders.get(folder)
            if known and known.changed_ns == changed_ns and known.read_ns - changed_ns > _FRESH_NS:
                return known.within, False
            read_ns = time.time_ns()
            within = tuple(sorted(found for found in folder.iterdir() if found.is_dir() and not found.is_symlink()))
        except OSError:
            return (), False
        self._folders[folder] = _Folder(changed_ns, read_ns, within)
        return within, True

    def _read(self, attempt: _Attempt, owned: float | None) -> TrialRow:
        try:
            if attempt.paths.result.exists():
                attempt.result_ns = _changed_ns(attempt.paths.result)
                result = TrialResult.model_validate_json(attempt.paths.result.read_bytes())
                attempt.sandbox = result.sandbox
                return ended_row(attempt.row.key, result, 1)
        except (OSError, ValidationError) as error:
            return attempt.row.model_copy(
                update={"state": "unreadable", "status": "unreadable", "note": one_line(_why(error))}
            )
        return self._growing_row(attempt, owned)

    def _growing_row(self, attempt: _Attempt, owned: float | None) -> TrialRow:
        paths = attempt.paths
        attempt.sandbox = attempt.sandbox or sandbox_of(paths)
        try:
            with paths.trajectory.open("rb") as stream:
                stream.seek(attempt.read_bytes)
                added = stream.read()
        except OSError:
            added = b""
        attempt.read_bytes += len(added)
        changed = max(_changed_ns(place) for place in (paths.trajectory, paths.logs / "trial.log", paths.root)) / 1e9
        # What an earlier process left behind is not at work, even where another has taken up the run since.
        is_last = self._trials[attempt.trial][-1] is attempt
        state = "running" if owned is not None and changed >= owned - 1.0 and is_last else "unfinished"
        return attempt.row.model_copy(
            update={
                "state": state,
                "status": state,
                "steps": attempt.row.steps + added.count(b"\n"),
                "active_at": datetime.fromtimestamp(changed, UTC),
            }
        )


def _key(folder: Path) -> str:
    return "/".join(folder.parts[-4:])


def _changed_ns(place: Path) -> int:
    try:
        return place.stat().st_mtime_ns
    except OSError:
        return 0


def _why(error: OSError | ValidationError) -> str:
    if isinstance(error, OSError):
        return f"result.json cannot be read: {error.strerror or error}"
    found = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in found["loc"])
    return f"result.json is corrupt: {place or 'it'}: {found['msg'] if place else json.dumps(found['msg'])}"
