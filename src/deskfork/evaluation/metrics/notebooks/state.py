"""Asking whether a notebook's cells were run, or their outputs cleared."""

import re
from collections.abc import Callable

from deskfork.evaluation.metrics.judged import MATCH, Comparison, Judged, shown
from deskfork.evaluation.metrics.notebooks.reading import (
    Broken,
    Cell,
    check_as_upstream,
    read_as_upstream,
    read_cells,
    read_gold_cells,
)
from deskfork.evaluation.metrics.notebooks.runs import run_fault
from deskfork.evaluation.metrics.notebooks.upstream import zero_as_upstream
from deskfork.evaluation.metrics.notebooks.visible import views

# A last line that prints or displays something, or names a value by attributes, as `table.shape`.
_SHOWING_LINE = re.compile(r"(?:print|display)\([^)].*\)|[A-Za-z_]\w*(?:\.\w+)+")


def is_jupyter_cell_executed(result: bytes, *, original: bytes | None = None) -> Comparison:
    """Ask whether all code cells of a notebook were run.

    upstream: every code cell has an execution count, whatever it is; a notebook without code cells passes.

    strict: there is code, all of it was run, in one kernel, without errors, and what must show something does; the
    cells are those of the original. Blank cells need not be run.

    Args:
        result: The guest's notebook.
        original: The notebook as the task's set-up made it, if known.

    Returns:
        1.0 or 0.0 for each; what is no notebook is 0.0. Upstream's runner takes an exception for 0.0.

    Raises:
        EvaluationError: The original is no notebook.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/metrics/jupyterlab.py, `is_jupyter_cell_executed`.
    """
    upstream = _upstream(result, is_run_wanted=True)
    return Comparison(upstream, _strict(result, original, _not_run))


def are_jupyter_outputs_cleared(result: bytes, *, original: bytes | None = None) -> Comparison:
    """Ask whether the outputs of all code cells of a notebook were cleared.

    upstream: no code cell has an execution count. Outputs are not looked at; a notebook without code cells passes.

    strict: there is code, none of it has an output, and the cells are those of the original.

    Args:
        result: The guest's notebook.
        original: The notebook as the task's set-up made it, if known.

    Returns:
        1.0 or 0.0 for each; what is no notebook is 0.0. Upstream's runner takes an exception for 0.0.

    Raises:
        EvaluationError: The original is no notebook.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/metrics/jupyterlab.py, `are_jupyter_outputs_cleared`.
    """
    upstream = _upstream(result, is_run_wanted=False)
    return Comparison(upstream, _strict(result, original, _not_cleared))


@zero_as_upstream
def _upstream(result: bytes, *, is_run_wanted: bool) -> Judged:
    wrong = []
    notebook = read_as_upstream(result)
    for place, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "code" and bool(cell.get("execution_count")) != is_run_wanted:
            wrong.append(place)
    check_as_upstream(notebook, result)
    if not wrong:
        return MATCH
    said = "no execution count" if is_run_wanted else "an execution count"
    return Judged(0.0, f"{len(wrong)} code cells have {said}, the first is cell {wrong[0]}")


def _strict(result: bytes, original: bytes | None, fault: Callable[[list[Cell]], str]) -> Judged:
    before = None if original is None else _written(read_gold_cells(original, name="original"))
    try:
        cells = _written(read_cells(result))
    except Broken as error:
        return Judged(0.0, f"the notebook is broken: {error}")
    if not any(cell.kind == "code" for cell in cells):
        return Judged(0.0, "the notebook has no code")
    said = _changed(cells, before) if before is not None else ""
    said = said or fault(cells)
    return Judged(0.0, said) if said else MATCH


def _written(cells: list[Cell]) -> list[Cell]:
    return [cell for cell in cells if not cell.is_blank]


def _changed(cells: list[Cell], before: list[Cell]) -> str:
    if len(cells) != len(before):
        return f"the notebook has {len(cells)} cells that are not blank, and had {len(before)}"
    for place, (cell, other) in enumerate(zip(cells, before, strict=True), start=1):
        if (cell.kind, cell.lines) != (other.kind, other.lines):
            return f"cell {place} reads {shown(cell.source)}, and read {shown(other.source)}"
    return ""


def _not_cleared(cells: list[Cell]) -> str:
    full = [place for place, cell in enumerate(cells, start=1) if cell.outputs]
    return f"{len(full)} cells have outputs, the first is cell {full[0]}" if full else ""


def _not_run(cells: list[Cell]) -> str:
    if fault := run_fault(cells):
        return fault
    for place, cell in enumerate(cells, start=1):
        if cell.kind == "code" and cell.count is None and cell.source.strip():
            return f"code cell {place} was not run"
        if _must_show(cell) and not views(cell):
            return f"code cell {place} has a number, but nothing of what it shows when it is run"
    return ""


def _must_show(cell: Cell) -> bool:
    """Tell whether running a cell must leave an output; only what is sure counts."""
    return cell.kind == "code" and bool(_SHOWING_LINE.fullmatch(cell.lines[-1]))
