"""What brings a machine to where a task starts: the steps of its set-up."""

from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from deskfork.core.config import StrictModel

CONDA_SCRIPT = "/home/user/anaconda3/etc/profile.d/conda.sh"
MAX_PATH_CHARS = 1024


def _safe_guest_path(path: PurePosixPath) -> PurePosixPath:
    text = str(path)
    if not path.is_absolute() or ".." in path.parts or path == PurePosixPath("/"):
        raise ValueError(f"guest path {text!r} must be absolute and without '..'")
    if len(text) > MAX_PATH_CHARS or not text.isprintable():
        raise ValueError(f"guest path {text[:80]!r} is too long or has unprintable characters")
    return path


def _safe_host_path(path: Path) -> Path:
    text = str(path)
    if path.is_absolute() or ".." in path.parts or text in ("", "."):
        raise ValueError(f"host path {text!r} must be relative to the task's folder or checkout, and stay inside it")
    if len(text) > MAX_PATH_CHARS or not text.isprintable():
        raise ValueError(f"host path {text[:80]!r} is too long or has unprintable characters")
    return path


GuestPath = Annotated[PurePosixPath, AfterValidator(_safe_guest_path)]
"""Absolute, without `..`."""
HostPath = Annotated[Path, AfterValidator(_safe_host_path)]
"""Relative to `Task.root`, without `..`."""
Argument = Annotated[str, Field(min_length=1, max_length=16_384, pattern=r"^[^\x00]*$")]


class CopyStep(StrictModel):
    """Copy one host file into the guest, owned by the guest's user."""

    type: Literal["copy"] = "copy"
    source: HostPath
    target: GuestPath


class SupplyStep(StrictModel):
    """Put a file there that deskfork made for a task, and run what uses it: a fixture that upstream has no need of."""

    type: Literal["supply"] = "supply"
    source: Path
    """Absolute; in deskfork's cache."""
    target: GuestPath
    command: tuple[Argument, ...] = ()
    """Run once the file is there; it must succeed."""


class ScriptStep(StrictModel):
    """Copy a shell script into the guest, run it with `bash`, wait for its end and remove it."""

    type: Literal["script"] = "script"
    source: HostPath
    target: GuestPath
    arguments: tuple[Argument, ...] = ()
    timeout_s: float = Field(default=300.0, gt=0, le=3600)
    """Seconds the script may take."""


class BrowserStep(StrictModel):
    """Have Chromium open with its debugging port reachable, and open one tab for each URL."""

    type: Literal["browser"] = "browser"
    urls: tuple[Argument, ...] = ()
    debugging_port: Literal[1337] = 1337
    listening_port: Literal[9222] = 9222


class LaunchStep(StrictModel):
    """Start a program in the desktop session and leave it running."""

    type: Literal["launch"] = "launch"
    command: tuple[Argument, ...] = Field(min_length=1)
    window: str | None = Field(default=None, min_length=1)
    """Wait until a window is there whose title contains this."""


class ActivateWindowStep(StrictModel):
    """Bring the window whose title contains `title` to the front."""

    type: Literal["activate_window"] = "activate_window"
    title: str = Field(min_length=1, max_length=1024)
    is_exact: bool = False
    """Whether the title must be equal, not just contain it."""


class ExecuteStep(StrictModel):
    """Run one program in the desktop session and wait for its end; what it exits with is not looked at."""

    type: Literal["execute"] = "execute"
    command: tuple[Argument, ...] = Field(min_length=1)
    timeout_s: float = Field(default=120.0, gt=0, le=3600)
    """Seconds it may take."""


class SleepStep(StrictModel):
    """Let the guest run for a while."""

    type: Literal["sleep"] = "sleep"
    duration_s: float = Field(gt=0, le=600)


SetupStep = Annotated[
    CopyStep | SupplyStep | ScriptStep | BrowserStep | LaunchStep | ActivateWindowStep | ExecuteStep | SleepStep,
    Field(discriminator="type"),
]
