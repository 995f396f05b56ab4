"""Comparing notebooks as documents."""

from itertools import zip_longest
from typing import Any

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.metrics.judged import MATCH, Comparison, Judged, shown
from deskfork.evaluation.metrics.notebooks.reading import Broken, Cell, read_cells, read_gold_cells, read_object
from deskfork.evaluation.metrics.notebooks.visible import difference


def compare_ipynb_files(result: bytes, gold: bytes) -> Comparison:
    """Compare two notebooks as documents.

    upstream: the two JSON objects are walked side by side: keys must be equal place by place, and their values too,
    except that of `metadata`. The walk stops at the end of the shorter one, so that an empty object equals any.

    strict: the result must be a notebook with the gold one's cells, in kind, source and what is seen below them. Order
    of keys, metadata, ids, minor format, execution counts and blank cells at the end do not count.

    Args:
        result: The guest's notebook.
        gold: The gold notebook.

    Returns:
        1.0 or 0.0 for each; what is no JSON object is 0.0. Upstream's runner takes an exception for 0.0.

    Raises:
        EvaluationError: The gold notebook is none.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/metrics/jupyterlab.py, `compare_ipynb_files`.
    """
    wanted = read_gold_cells(gold)
    try:
        expected = read_object(gold, is_bom_allowed=False)
    except Broken as error:
        raise EvaluationError(f"the gold notebook cannot be compared with: {error}") from error
    return Comparison(_upstream(result, expected), _strict(result, wanted))


def _upstream(result: bytes, expected: dict[str, Any]) -> Judged:
    try:
        found = read_object(result, is_bom_allowed=False)
        for (key, value), (other_key, other) in zip(found.items(), expected.items(), strict=False):
            if key != other_key:
                return Judged(0.0, f"the file has {shown(key)} in the place of {shown(other_key)}")
            if key != "metadata" and value != other:
                return Judged(0.0, f"the file differs in {shown(key)}")
    except Broken as error:
        return Judged(0.0, f"the notebook is broken: {error}")
    except RecursionError:
        return Judged(0.0, "the notebook is broken: it is nested too deep")
    return MATCH


def _strict(result: bytes, wanted: list[Cell]) -> Judged:
    try:
        cells = read_cells(result)
    except Broken as error:
        return Judged(0.0, f"the notebook is broken: {error}")
    pairs = zip_longest(_without_blank_end(cells), _without_blank_end(wanted))
    for place, (cell, gold) in enumerate(pairs, start=1):
        if cell is None or gold is None:
            return Judged(0.0, f"cell {place} is {'missing' if cell is None else 'too much'}")
        if cell.kind != gold.kind:
            return Judged(0.0, f"cell {place} is of kind {cell.kind}, expected {gold.kind}")
        if cell.lines != gold.lines:
            return Judged(0.0, f"cell {place} reads {shown(cell.source)}, expected {shown(gold.source)}")
        if said := difference(cell, gold):
            return Judged(0.0, f"cell {place} {said}")
    return MATCH


def _without_blank_end(cells: list[Cell]) -> list[Cell]:
    end = len(cells)
    while end and cells[end - 1].is_blank:
        end -= 1
    return cells[:end]
