"""Metrics on Jupyter notebooks, which are parsed here: guest bytes, of any size and shape."""

import json
from dataclasses import dataclass
from typing import Any

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.metrics.judged import MATCH, Judged, shown

MAX_NOTEBOOK_BYTES = 32 * 1024 * 1024
_PIP_LINES = ("Requirement already satisfied:", "Successfully installed")


@dataclass(frozen=True)
class _Shown:
    """An output that counts: what was printed on stdout, or the text form of what was displayed."""

    kind: str
    text: str


@dataclass(frozen=True)
class _Cell:
    kind: str
    outputs: tuple[_Shown, ...]


class _Broken(ValueError):
    """The bytes are no notebook; the message says why."""


def compare_notebook_outputs(result: bytes, expected: bytes) -> Judged:
    """Compare what the cells of two notebooks printed on stdout and displayed as plain text.

    Kinds and number of cells must be equal; sources, execution counts, stderr, errors and images are not looked at. In
    the result, printed outputs that hold a line of pip's are left out.

    Args:
        result: The guest's notebook.
        expected: The gold notebook.

    Returns:
        1.0 if all such outputs are equal, else 0.0; what is no notebook of format 4 is 0.0.

    Raises:
        EvaluationError: The gold notebook is none.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/metrics/jupyterlab.py, `compare_notebook_outputs`.
    """
    try:
        gold = _cells(expected, skip_pip=False)
    except _Broken as error:
        raise EvaluationError(f"the gold notebook cannot be compared with: {error}") from error
    try:
        found = _cells(result, skip_pip=True)
    except _Broken as error:
        return Judged(0.0, f"the notebook is broken: {error}")
    if len(found) != len(gold):
        return Judged(0.0, f"the notebook has {len(found)} cells, expected {len(gold)}")
    for place, (cell, wanted) in enumerate(zip(found, gold, strict=True), start=1):
        if difference := _difference(cell, wanted):
            return Judged(0.0, f"cell {place} {difference}")
    return MATCH


def _difference(cell: _Cell, wanted: _Cell) -> str:
    if cell.kind != wanted.kind:
        return f"is of kind {shown(cell.kind)}, expected {shown(wanted.kind)}"
    if len(cell.outputs) != len(wanted.outputs):
        return f"has {len(cell.outputs)} text outputs, expected {len(wanted.outputs)}"
    for output, gold in zip(cell.outputs, wanted.outputs, strict=True):
        if output.kind != gold.kind:
            return f"has a {output.kind} output, expected {gold.kind}"
        if output.text != gold.text:
            return f"shows {_around(output.text, gold.text)}, expected {_around(gold.text, output.text)}"
    return ""


def _around(text: str, other: str) -> str:
    """Show `text` from its first line on that differs from `other`."""
    lines, others = text.splitlines(), other.splitlines()
    first = next((place for place, pair in enumerate(zip(lines, others, strict=False)) if pair[0] != pair[1]), None)
    start = min(len(lines), len(others)) if first is None else first
    return shown("\n".join(lines[start:]) or text[-80:])


def _cells(raw: bytes, *, skip_pip: bool) -> list[_Cell]:
    notebook = _parse(raw)
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise _Broken("it has no list of cells")
    return [_cell(cell, place, skip_pip=skip_pip) for place, cell in enumerate(cells, start=1)]


def _parse(raw: bytes) -> dict[str, Any]:
    if len(raw) > MAX_NOTEBOOK_BYTES:
        raise _Broken(f"it is larger than {MAX_NOTEBOOK_BYTES // 1024**2} MiB")
    try:
        notebook = json.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise _Broken(f"it is not UTF-8 text (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise _Broken(f"it is not JSON (line {error.lineno}: {error.msg})") from error
    except RecursionError as error:
        raise _Broken("it is nested too deep") from error
    except ValueError as error:
        # Python refuses integers of more than 4300 digits.
        raise _Broken("it holds a number that is too long") from error
    if not isinstance(notebook, dict):
        raise _Broken("its top level is no JSON object")
    if notebook.get("nbformat") != 4:
        raise _Broken(f"its nbformat is {shown(str(notebook.get('nbformat')))}, not 4")
    return notebook


def _cell(cell: object, place: int, *, skip_pip: bool) -> _Cell:
    if not isinstance(cell, dict) or not isinstance(kind := cell.get("cell_type"), str):
        raise _Broken(f"cell {place} has no type")
    if kind != "code":
        return _Cell(kind, ())
    outputs = cell.get("outputs")
    if not isinstance(outputs, list):
        raise _Broken(f"code cell {place} has no list of outputs")
    seen = (_shown(output, place) for output in outputs)
    return _Cell(kind, tuple(output for output in seen if output and not (skip_pip and _is_from_pip(output))))


def _shown(output: object, place: int) -> _Shown | None:
    if not isinstance(output, dict):
        raise _Broken(f"code cell {place} has an output that is no object")
    if output.get("name") == "stdout":
        return _Shown("stdout", _joined(output.get("text", ""), place))
    bundle = output.get("data")
    if isinstance(bundle, dict) and "text/plain" in bundle:
        return _Shown("text/plain", _joined(bundle["text/plain"], place))
    return None


def _is_from_pip(output: _Shown) -> bool:
    return output.kind == "stdout" and any(line in output.text for line in _PIP_LINES)


def _joined(text: object, place: int) -> str:
    if isinstance(text, str):
        return text
    if isinstance(text, list) and all(isinstance(part, str) for part in text):
        return "".join(text)
    raise _Broken(f"code cell {place} has an output whose text is none")
