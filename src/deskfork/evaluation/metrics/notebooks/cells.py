"""Comparing the cells of notebooks by kind and source."""

from typing import Any

from deskfork.evaluation.metrics.judged import MATCH, Comparison, Judged, shown
from deskfork.evaluation.metrics.notebooks.reading import (
    Broken,
    check_as_upstream,
    read_as_upstream,
    read_cells,
    read_gold_cells,
)
from deskfork.evaluation.metrics.notebooks.upstream import read_gold_as_upstream, zero_as_upstream


def compare_notebook_cells(result: bytes, gold: bytes) -> Comparison:
    """Compare the kinds and sources of the cells of two notebooks; whether they were run does not matter.

    upstream: number, kinds and sources must be equal, to the last blank.

    strict: blank cells, blanks at line ends, and blank lines around a cell's source do not count.

    Args:
        result: The guest's notebook.
        gold: The gold notebook.

    Returns:
        1.0 or 0.0 for each; what is no notebook is 0.0. Upstream's runner takes an exception for 0.0.

    Raises:
        EvaluationError: The gold notebook is none.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/metrics/jupyterlab.py, `compare_notebook_cells`.
    """
    return Comparison(_upstream(result, read_gold_as_upstream(gold)), _strict(result, gold))


@zero_as_upstream
def _upstream(result: bytes, expected: Any) -> Judged:
    notebook = read_as_upstream(result)
    found = notebook["cells"]
    if len(found) != len(expected):
        return Judged(0.0, f"the notebook has {len(found)} cells, expected {len(expected)}")
    for place, (cell, wanted) in enumerate(zip(found, expected, strict=False), start=1):
        for key in ("cell_type", "source"):
            if cell[key] != wanted[key]:
                said = f"{shown(str(cell[key]))} as {key}, expected {shown(str(wanted[key]))}"
                return Judged(0.0, f"cell {place} has {said}")
    check_as_upstream(notebook, result)
    return MATCH


def _strict(result: bytes, gold: bytes) -> Judged:
    wanted = [cell for cell in read_gold_cells(gold) if not cell.is_blank]
    try:
        cells = [cell for cell in read_cells(result) if not cell.is_blank]
    except Broken as error:
        return Judged(0.0, f"the notebook is broken: {error}")
    if len(cells) != len(wanted):
        return Judged(0.0, f"the notebook has {len(cells)} cells that are not blank, expected {len(wanted)}")
    for place, (cell, other) in enumerate(zip(cells, wanted, strict=True), start=1):
        if cell.kind != other.kind:
            return Judged(0.0, f"cell {place} is of kind {cell.kind}, expected {other.kind}")
        if cell.lines != other.lines:
            pairs = zip((*cell.lines, ""), (*other.lines, ""), strict=False)
            line, expected = next((pair for pair in pairs if pair[0] != pair[1]), (cell.lines[-1], other.lines[-1]))
            return Judged(0.0, f"cell {place} has the line {shown(line)}, expected {shown(expected)}")
    return MATCH
