"""Whether a notebook's cells look as a kernel leaves them."""

from deskfork.evaluation.metrics.judged import shown
from deskfork.evaluation.metrics.notebooks.reading import Cell


def run_fault(cells: list[Cell]) -> str:
    """Say what a kernel that ran these cells could not have left; empty if there is nothing.

    A cell that was not run is no fault here.
    """
    numbers: dict[int, int] = {}
    for place, cell in enumerate(cells, start=1):
        if cell.count is None:
            if cell.outputs:
                return f"cell {place} has outputs, but was not run"
            continue
        if cell.count < 1:
            return f"cell {place} was run as number {cell.count}"
        if other := numbers.get(cell.count):
            return f"cells {other} and {place} were both run as number {cell.count}"
        numbers[cell.count] = place
        for output in cell.outputs:
            if output.kind == "error":
                return f"cell {place} ended with {shown(output.name)}"
            if output.kind == "execute_result" and output.count != cell.count:
                return f"cell {place} was run as number {cell.count}, but its result is of number {output.count}"
    return ""
