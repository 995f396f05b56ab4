"""What a fake sandbox shall do wrong."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FakeFaults:
    """What shall go wrong, so that tests can watch how it is dealt with."""

    failing_forks: int = 0
    """The first so many forks raise SandboxError."""
    dies_in_cell: int | None = None
    """The machine is gone as soon as its cell of this number was started; every cell counts, from 1."""
    host_full_in_cell: int | None = None
    """The host's disk is full when its cell of this number writes; every cell counts, from 1."""
    dies_in_exec: int | None = None
    """The same for programs."""
    failing_examinations: int = 0
    """The first so many final states that are examined raise SandboxError."""
    dying_sandboxes: int | None = None
    """Only the first so many sandboxes die, all by default."""
