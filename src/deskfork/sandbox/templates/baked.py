"""What baking a set-up is told, and what it tells."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class BakeOptions:
    """How a set-up is baked."""

    network: bool = False
    """Whether the guest may open connections to the outside meanwhile; forks ask for the same."""
    force: bool = False
    """Bake again what is there already."""
    on_progress: Callable[[str], None] = lambda line: None
    """Told in a few words what is going on."""


@dataclass(frozen=True)
class Baked:
    """What `SandboxProvider.bake` made, or found."""

    template: str
    key: str
    digest: str
    is_new: bool
    """Whether it was made now; it was there already otherwise."""
    form: Literal["delta", "full"]
    """Whether it keeps only what differs from its template's memory."""
    disk_mib: float
    """What it occupies."""
    phases_s: Mapping[str, float]
    """Seconds by phase of its making: fork, setup, settle, write, store."""
