"""The base of everything that is read from or written to disk, and where deskfork keeps its files."""

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """Frozen; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def cache_dir() -> Path:
    """Return where images, templates and live sandboxes are kept.

    `DESKFORK_CACHE` if set, else `$XDG_CACHE_HOME/deskfork`, else `~/.cache/deskfork`.
    """
    if explicit := os.environ.get("DESKFORK_CACHE"):
        return Path(explicit).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "deskfork"
