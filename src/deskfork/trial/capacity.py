"""How many trials this machine can carry at the same time: by its processors, and by memory that is free now."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from deskfork.core.errors import ConfigError, InfraError
from deskfork.sandbox.machine import MachineSpec

MAX_PARALLEL = 64
_FAKE_MIB = 48
"""Of the fake provider: its kernel's process and one program."""
_OVERHEAD_MIB = 96
"""QEMU's own, beside the guest's memory and what it keeps of translated code."""
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Capacity:
    """What this machine has to give."""

    cores: int
    """Processors that this process may use."""
    free_mib: int
    """Memory that can be used without swapping, within the limit of the control group."""


@dataclass(frozen=True)
class Slots:
    """How many trials run at the same time, and what that takes."""

    count: int
    sandbox_mib: int
    """What one sandbox may come to use."""
    capacity: Capacity
    warning: str = ""
    """Why that is not a good number; empty when it is."""


def measure_capacity() -> Capacity:
    """Measure what is there now.

    Raises:
        InfraError: The kernel does not tell how much memory is free.
    """
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    free_mib = next((int(line.split()[1]) // 1024 for line in lines if line.startswith("MemAvailable:")), None)
    if free_mib is None:
        raise InfraError("/proc/meminfo does not tell how much memory is available")
    return Capacity(len(os.sched_getaffinity(0)), min(free_mib, _left_in_group_mib(free_mib)))


def sandbox_mib(provider: str, acceleration: str = "tcg") -> int:
    """Return what one sandbox of that provider may come to use at most, MiB.

    Args:
        provider: Its name; `auto` is one of real machines.
        acceleration: What the machines run under, `tcg` where that is not known yet: it needs more.
    """
    if provider == "fake":
        return _FAKE_MIB
    spec = MachineSpec()
    return spec.memory_mib + _OVERHEAD_MIB + (spec.translation_cache_mib if acceleration == "tcg" else 0)


def choose_slots(parallel: int | Literal["auto"], need_mib: int, capacity: Capacity) -> Slots:
    """Return how many trials to run at the same time.

    Args:
        parallel: What was asked for; `auto` for what fits.
        need_mib: What one sandbox may come to use.
        capacity: What there is.

    Raises:
        ConfigError: That many do not fit into memory, or not even one does.
    """
    fitting = capacity.free_mib // need_mib
    count = max(1, min(capacity.cores, fitting, MAX_PARALLEL)) if parallel == "auto" else parallel
    if count > fitting:
        raise ConfigError(
            f"{count} trials at the same time need {count} x {need_mib} MiB = {count * need_mib} MiB of memory, and"
            f" {capacity.free_mib} MiB are free: "
            + (f"at most {fitting} fit (--parallel auto chooses)" if fitting else "free some, or use another machine")
        )
    warning = ""
    if count > capacity.cores:
        warning = f"{count} trials share {capacity.cores} cores: each gets slower, and their times say less"
    return Slots(count, need_mib, capacity, warning)


def _left_in_group_mib(otherwise: int) -> int:
    """Return what the control group's limit leaves, or `otherwise` where there is no limit."""
    try:
        limit = (_CGROUP / "memory.max").read_text(encoding="ascii").strip()
        used = int((_CGROUP / "memory.current").read_text(encoding="ascii"))
        stat = dict(line.split() for line in (_CGROUP / "memory.stat").read_text(encoding="ascii").splitlines())
    except (OSError, ValueError):  # another version of control groups, or its root, which has no limit
        return otherwise
    if not limit.isdecimal():
        return otherwise
    # Pages of files that nobody maps are given up before a limit is hit.
    return max(0, int(limit) - used + int(stat.get("inactive_file", 0))) // 2**20
