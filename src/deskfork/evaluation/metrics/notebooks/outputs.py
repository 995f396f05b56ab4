"""Comparing what the cells of a notebook printed and displayed."""

from difflib import SequenceMatcher
from typing import Any

from deskfork.evaluation.metrics.judged import MATCH, Comparison, Judged, shown
from deskfork.evaluation.metrics.notebooks.reading import (
    PIP_TEXTS,
    Broken,
    Cell,
    check_as_upstream,
    read_as_upstream,
    read_cells,
    read_gold_cells,
)
from deskfork.evaluation.metrics.notebooks.runs import run_fault
from deskfork.evaluation.metrics.notebooks.upstream import read_gold_as_upstream, zero_as_upstream
from deskfork.evaluation.metrics.notebooks.visible import difference, views

_NEARLY = 0.65
_COMPARED_CHARS = 200
_COMPARED_LINES = 50


def compare_notebook_outputs(result: bytes, gold: bytes, *, original: bytes | None = None) -> Comparison:
    """Compare what the cells of two notebooks printed and displayed.

    upstream: number and kinds of cells, and their outputs on stdout and displayed plain text, must be equal one by one.
    Sources, execution counts, stderr, errors, HTML and pictures are not looked at. In the result, and there only, an
    output that holds a line of pip's is left out as a whole.

    strict: the cells must have been run (own numbers, no errors), stand in order, show the same to a reader, and hold
    the gold notebook's text cells; code cells that the task leaves as they were must still hold their lines, or lines
    much like them. Blank cells, cells that only install something, lines of pip's, the split of printed text into
    outputs, widths of blanks, addresses in memory and noise in the last digits do not count; nor does what a cell that
    the task has changed shows where the gold one shows nothing.

    Args:
        result: The guest's notebook.
        gold: The gold notebook.
        original: The notebook as the task's set-up made it, if there was one.

    Returns:
        1.0 or 0.0 for each; what is no notebook is 0.0. Upstream's runner takes an exception for 0.0.

    Raises:
        EvaluationError: The gold notebook, or the original, is none.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/metrics/jupyterlab.py, `compare_notebook_outputs`.
    """
    gold_cells = read_gold_cells(gold)
    original_cells = None if original is None else read_gold_cells(original, name="original")
    return Comparison(_upstream(result, read_gold_as_upstream(gold)), _strict(result, gold_cells, original_cells))


@zero_as_upstream
def _upstream(result: bytes, expected: Any) -> Judged:
    notebook = read_as_upstream(result)
    found = notebook["cells"]
    if len(found) != len(expected):
        return Judged(0.0, f"the notebook has {len(found)} cells, expected {len(expected)}")
    for place, (cell, wanted) in enumerate(zip(found, expected, strict=False), start=1):
        if said := _upstream_difference(cell, wanted):
            return Judged(0.0, f"cell {place} {said}")
    check_as_upstream(notebook, result)
    return MATCH


def _upstream_difference(cell: Any, wanted: Any) -> str:
    if cell["cell_type"] != wanted["cell_type"]:
        return f"is of kind {shown(str(cell['cell_type']))}, expected {shown(str(wanted['cell_type']))}"
    if cell["cell_type"] != "code":
        return ""
    outputs = [output for output in cell["outputs"] if _counts(output, is_result=True)]
    golds = [output for output in wanted["outputs"] if _counts(output, is_result=False)]
    if len(outputs) != len(golds):
        return f"has {len(outputs)} text outputs, expected {len(golds)}"
    for output, gold in zip(outputs, golds, strict=True):
        if "name" in output and output != gold:
            return f"shows {_around(_text(output), _text(gold))}, expected {_around(_text(gold), _text(output))}"
        if "data" in output and (text := output["data"]["text/plain"]) != (other := gold["data"]["text/plain"]):
            return f"shows {_around(str(text), str(other))}, expected {_around(str(other), str(text))}"
    return ""


def _counts(output: Any, *, is_result: bool) -> bool:
    is_printed = "name" in output and output["name"] == "stdout"
    if is_printed and is_result:
        is_printed = not any(text in output["text"] for text in PIP_TEXTS)
    return is_printed or ("data" in output and "text/plain" in output["data"])


def _text(output: Any) -> str:
    return str(output.get("text", output.get("data")))


def _around(text: str, other: str) -> str:
    """Show `text` from its first line on that differs from `other`."""
    lines, others = text.splitlines(), other.splitlines()
    first = next((place for place, pair in enumerate(zip(lines, others, strict=False)) if pair[0] != pair[1]), None)
    start = min(len(lines), len(others)) if first is None else first
    return shown("\n".join(lines[start:]) or text[-80:])


def _strict(result: bytes, gold_cells: list[Cell], original_cells: list[Cell] | None) -> Judged:
    try:
        cells = _counting(read_cells(result))
    except Broken as error:
        return Judged(0.0, f"the notebook is broken: {error}")
    golds, originals = _counting(gold_cells), _counting(original_cells or [])
    if len(cells) != len(golds):
        return Judged(0.0, f"the notebook has {len(cells)} cells that are not blank, expected {len(golds)}")
    if said := _moved(cells, golds):
        return Judged(0.0, said)
    for place, (cell, gold) in enumerate(zip(cells, golds, strict=True), start=1):
        before = originals[place - 1] if place <= len(originals) else None
        if said := _strict_difference(cell, gold, before):
            return Judged(0.0, f"cell {place} (blank ones not counted) {said}")
    if any(gold.count is not None for gold in golds) and (said := run_fault(cells)):
        return Judged(0.0, said)
    return MATCH


def _counting(cells: list[Cell]) -> list[Cell]:
    return [cell for cell in cells if not cell.is_blank and not cell.is_installation]


def _strict_difference(cell: Cell, gold: Cell, before: Cell | None) -> str:
    if cell.kind != gold.kind:
        return f"is of kind {cell.kind}, expected {gold.kind}"
    if cell.kind != "code":
        return "" if cell.lines == gold.lines else f"reads {shown(cell.source)}, expected {shown(gold.source)}"
    if gold.count is not None and cell.count is None:
        return "was not run"
    if before is not None and before.lines == gold.lines and (lost := _lost_line(before, cell)):
        return f"has lost the line {shown(lost)}, which the task does not ask to change"
    if before is not None and before.lines != gold.lines and not views(gold):
        return ""
    return difference(cell, gold)


def _moved(cells: list[Cell], golds: list[Cell]) -> str:
    """Say which cell stands where the gold notebook has another one of its own; empty if none does."""
    places = {(gold.kind, gold.lines): place for place, gold in enumerate(golds, start=1)}
    for place, (cell, gold) in enumerate(zip(cells, golds, strict=True), start=1):
        other = places.get((cell.kind, cell.lines))
        if other is not None and (cell.kind, cell.lines) != (gold.kind, gold.lines):
            return f"cell {place} (blank ones not counted) is what cell {other} should be"
    return ""


def _lost_line(before: Cell, cell: Cell) -> str:
    """Return the first line of code of `before` that `cell` does not hold, in the same order, alike or nearly so."""
    lines = [line.strip() for line in cell.lines]
    for line in (line.strip() for line in before.lines):
        if not line or line.startswith("#"):
            continue
        place = lines.index(line) if line in lines else _nearest(lines, line)
        if place is None:
            return line
        del lines[: place + 1]
    return ""


def _nearest(lines: list[str], line: str) -> int | None:
    """Find the first line that may be `line` mended, as a raw string for a string, or one argument more."""
    wanted = line[:_COMPARED_CHARS]
    for place, other in enumerate(lines[:_COMPARED_LINES]):
        matcher = SequenceMatcher(None, other[:_COMPARED_CHARS], wanted, autojunk=False)
        if matcher.quick_ratio() >= _NEARLY and matcher.ratio() >= _NEARLY:
            return place
    return None
