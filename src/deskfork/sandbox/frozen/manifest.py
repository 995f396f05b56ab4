"""What is written down of a frozen machine."""

from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import Field

from deskfork.core.config import StrictModel
from deskfork.sandbox.frozen.files import FrozenFile
from deskfork.sandbox.machine import MachineSpec

MemoryForm = Literal["own", "full", "delta"]


class BakedFrom(StrictModel):
    """Of which task's set-up a baked template is the outcome, and over which template."""

    task: str
    """The task with which it was baked; others with the same set-up share it."""
    key: str
    """Of the set-up; see `tasks.setup_key`."""
    parent: str
    """Name of the parent's folder, beside its own."""
    parent_digest: str
    network: bool = False
    """Whether the guest could open connections to the outside meanwhile."""


class FrozenManifest(StrictModel):
    """What a fork needs to know of the machine that it goes on from."""

    name: str
    digest: str
    """Of the contents; two templates with the same digest are the same instant."""
    image_digest: str
    image_directory: Path
    """Where the base image's disk, kernel and initrd lie; in a cache that was moved, beside the templates' folder."""
    qemu_version: str
    machine: MachineSpec
    opened: frozenset[str] = frozenset()
    token: str
    """What the guest's services still want until a fork gave them its own."""
    kernel_id: str
    ssh_host_key: str
    created_at: datetime
    build_s: dict[str, float] = Field(default_factory=dict)
    """Seconds by phase of the making: boot, open, settle, freeze."""
    files: dict[str, FrozenFile]
    memory_form: MemoryForm = "own"
    """own: a file of its own, as the guest wrote it; full: one file holds devices and memory; delta: devices, and only
    the pages that differ from the parent's."""
    memory_offset: int = 0
    """Where in its file memory begins; not 0 in full form."""
    baked: BakedFrom | None = None
    """None for a template that was booted."""
