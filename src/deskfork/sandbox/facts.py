"""What is known of sandboxes, checkpoints and templates."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SandboxFacts:
    """What is known of a sandbox from its start on."""

    id: str
    provider: str
    """docker, qemu or fake."""
    template: str
    template_digest: str
    acceleration: str
    """kvm, tcg, or none for the fake."""
    width_px: int
    height_px: int
    opened: frozenset[str] = frozenset()
    """What the template already has open: "jupyterlab" (on port 8888, serving the Desktop, its page in front),
    "browser", and the address of each further tab."""
    network: bool = False
    baked: str = ""
    """Key of the set-up that is done already; empty for a fork of a template as it was booted."""


@dataclass(frozen=True)
class Checkpoint:
    """A frozen instant of one sandbox: memory, devices and disk."""

    id: str
    digest: str
    bytes_written: int
    duration_s: float


@dataclass(frozen=True)
class TemplateFacts:
    """What a run's lock file says about a template."""

    name: str
    digest: str
    image_digest: str
    qemu_version: str
    acceleration: str
