"""Measuring what deskfork itself costs in an agent's step."""

from PIL.Image import Image

from deskfork.agent.build import run_agent
from deskfork.agent.config import OracleConfig
from deskfork.agent.limits import Limits
from deskfork.records.trajectory import StepRecord
from deskfork.sandbox.base import Guest

STEPS = 20


class _NoScreens:
    """Drops screenshots: writing them is the records' work, on another thread."""

    def save(self, image: Image, step: int) -> str:
        """Return a name without keeping `image`."""
        return f"{step}-{image.width}x{image.height}"


def framework_seconds(guest: Guest) -> list[float]:
    """Run an agent of trivial steps; return, for each but the first, what was not the model's, guest's or screen's."""
    records: list[StepRecord] = []
    cells = ["print(1)"] * STEPS + ['final_answer("done")']
    run_agent(
        OracleConfig(),
        instruction="Print 1.",
        guest=guest,
        solution_cells=cells,
        limits=Limits(steps=len(cells)),
        screens=_NoScreens(),
        on_step=records.append,
    )
    return [record.framework_s for record in records[1:]]
