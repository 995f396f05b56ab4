"""Where a run's files lie; the only place that knows the layout of a run directory."""

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from deskfork.core.errors import ConfigError

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def folder_name(label: str) -> str:
    """Return `label` as a folder's name: itself when safe, else a readable form with its hash, so that no two meet."""
    if _PLAIN.fullmatch(label):
        return label
    readable = re.sub(r"[^A-Za-z0-9.-]+", "-", label).strip("-.")[-48:].lstrip("-.")
    return f"{readable or 'x'}_{hashlib.sha256(label.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class AttemptPaths:
    """The folder of one attempt at one trial, and what lies in it."""

    root: Path

    @property
    def result(self) -> Path:
        """The attempt's TrialResult as JSON; written last, so an attempt without it never ended."""
        return self.root / "result.json"

    @property
    def trajectory(self) -> Path:
        """One StepRecord a line."""
        return self.root / "trajectory.jsonl"

    @property
    def messages(self) -> Path:
        """The full model conversation."""
        return self.root / "messages.json"

    @property
    def screens(self) -> Path:
        """One PNG for each distinct screen."""
        return self.root / "screens"

    @property
    def guest(self) -> Path:
        """What the evaluation read, and its index."""
        return self.evidence(0)

    def evidence(self, number: int) -> Path:
        """What the `number`-th evaluation of one end state read, from 0; all but the first are for `task check`."""
        return self.root / (f"guest-{number + 1}" if number else "guest")

    @property
    def state(self) -> Path:
        """The disk as the agent left it, where a run was asked to keep it."""
        return self.root / "state"

    @property
    def logs(self) -> Path:
        """What went on, for people."""
        return self.root / "logs"


@dataclass(frozen=True)
class RunPaths:
    """One run's directory."""

    root: Path

    @property
    def id(self) -> str:
        """The run's id: sortable by time, unique."""
        return self.root.name

    @property
    def config(self) -> Path:
        """The resolved configuration, YAML."""
        return self.root / "run.yaml"

    @property
    def lock(self) -> Path:
        """What exactly the run was made with, JSON."""
        return self.root / "lock.json"

    @property
    def owner(self) -> Path:
        """Locked by the process that works on the run, whose id it holds."""
        return self.root / "owner.lock"

    @property
    def trials(self) -> Path:
        """The folder of all trials."""
        return self.root / "trials"

    def attempt(self, task: str, agent: str, repeat: int, attempt: int) -> AttemptPaths:
        """Return the place of one attempt; nothing is made."""
        return AttemptPaths(self.trials / folder_name(task) / folder_name(agent) / str(repeat) / f"attempt-{attempt}")


def create_run(out: Path, *, now: datetime | None = None) -> RunPaths:
    """Make a fresh run directory below `out`.

    Args:
        out: Parent of all run directories; made when missing.
        now: Aware time that the run's id starts with; the present by default.

    Raises:
        ConfigError: `out` cannot be written to.
    """
    stamp = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    run = RunPaths(out.absolute() / f"{stamp}-{secrets.token_hex(3)}")
    try:
        run.root.mkdir(parents=True, exist_ok=False)
        run.trials.mkdir()
    except OSError as error:
        raise ConfigError(
            f"no run directory can be made in {out}: {error.strerror or error}; choose another --out"
        ) from error
    return run
