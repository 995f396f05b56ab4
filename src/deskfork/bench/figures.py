"""Figures with their spread."""

import statistics
from collections.abc import Sequence
from typing import Self

from deskfork.core.config import StrictModel


class Figure(StrictModel):
    """One measured quantity over its repeats."""

    median: float
    min: float
    max: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Summarise `values`, at least one, rounded to three decimals."""
        return cls(
            median=round(statistics.median(values), 3),
            min=round(min(values), 3),
            max=round(max(values), 3),
            n=len(values),
        )


class SandboxFigures(StrictModel):
    """What `deskfork bench sandbox` measures of one provider."""

    cold_boot_s: Figure
    """From starting QEMU until JupyterLab is painted in the browser and a cell has answered."""
    fork_to_first_output_s: Figure
    """The same state, by forking the `jupyter` template."""
    speedup: float
    """Median cold boot over median fork."""
    four_at_once_s: Figure
    """Four forks asked for at once: until the last has printed its first output."""
    disk_per_fork_mb: Figure
    """What a fork's folder occupies once it is idle, 10^6 bytes."""
    private_memory_per_fork_mb: Figure
    """Memory that an idle fork shares with nothing, 10^6 bytes."""
    cell_round_trip_ms: Figure
    """A trivial cell, after warm-up."""
    screenshot_ms: Figure
    """From the framebuffer to a decoded image."""
    framework_ms_per_step: Figure
    """An agent's step less the model's, the guest's and the observation's time."""
