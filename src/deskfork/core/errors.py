"""Every error that deskfork raises, in one tree.

A failing guest program, a cell's exception and a limit that was hit are values, not errors:
we raise only when our own machinery or the request is wrong.
"""


class DeskforkError(Exception):
    """Root of the tree."""


class ConfigError(DeskforkError):
    """What the caller asked for cannot be run (CLI exit 2)."""


class TaskError(ConfigError):
    """A task, or a checkout of tasks, breaks its schema."""


class InfraError(DeskforkError):
    """Our machinery failed; says nothing about the agent (CLI exit 3)."""


class SandboxError(InfraError):
    """The VM did not start, or is gone."""


class BootTimeout(SandboxError, TimeoutError):
    """The guest's services did not all answer within the boot deadline."""


class HostDiskFull(InfraError):
    """QEMU stopped a guest because the host had no room for what it wrote; never taken for the agent's doing."""


class TransportError(InfraError):
    """SSH, kernel, observer or QMP did not answer as agreed."""


class KernelLost(TransportError):
    """The kernel ignored an interrupt, or died."""


class EvaluationError(DeskforkError):
    """The state could not be judged: no score, not a zero."""


class GuestFileError(DeskforkError):
    """A guest file that was asked for is missing or too large; a fact about the guest's state, not our fault."""
