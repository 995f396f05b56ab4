"""Metrics on tables."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.metrics.approximate import is_same_number
from deskfork.evaluation.metrics.judged import MATCH, Comparison, Judged, shown

MAX_CSV_BYTES = 32 * 1024 * 1024
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_Row = tuple[str, ...]


class _Unreadable(ValueError):
    """The bytes are no table; the message says why."""


@dataclass(frozen=True)
class _Options:
    strict: bool
    ignore_case: bool
    ignore_order: bool

    def normal(self, text: str) -> str:
        text = text if self.strict else text.strip()
        return text.lower() if self.ignore_case else text


def compare_csv(
    result: bytes, gold: bytes, *, strict: bool = True, ignore_case: bool = False, ignore_order: bool = False
) -> Comparison:
    """Compare two CSV files.

    upstream: as texts, line by line, after dropping every byte that is not UTF-8. With `ignore_order` the header is a
    line like the others.

    strict: as tables in UTF-8: a header and rows of cells. How cells are quoted, kinds of line ends, a byte order mark,
    blank lines at the end and noise in the last digits of numbers do not count. Rows that are equal in the column
    by which the gold file is sorted may come in any order among themselves. With `ignore_order` the header stays first.

    Args:
        result: The guest's file.
        gold: The gold file.
        strict: Whether blanks at both ends of a line (for the strict verdict: of a cell) matter.
        ignore_case: Whether `a` equals `A`.
        ignore_order: Whether the lines may come in any order.

    Returns:
        1.0 or 0.0 for each. Files of more than `MAX_CSV_BYTES` are 0.0 for both, though upstream would read them.

    Raises:
        EvaluationError: The gold file is no UTF-8 text, no table, or too large.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/metrics/table.py, `compare_csv`.
    """
    options = _Options(strict, ignore_case, ignore_order)
    try:
        wanted = _rows(gold, options)
    except _Unreadable as error:
        raise EvaluationError(f"the gold file cannot be compared with: {error}") from error
    if len(result) > MAX_CSV_BYTES:
        return Comparison.agreed(Judged(0.0, f"the file is larger than {MAX_CSV_BYTES // 1024**2} MiB"))
    return Comparison(_upstream(result, gold, options), _strict(result, wanted, options))


def _upstream(result: bytes, gold: bytes, options: _Options) -> Judged:
    found, wanted = (_lines(raw, options) for raw in (result, gold))
    if found == wanted:
        return MATCH
    for place, (line, other) in enumerate(zip_longest(found, wanted), start=1):
        if line is None:
            return Judged(0.0, f"line {place} is missing: expected {shown(other)}")
        if other is None:
            return Judged(0.0, f"line {place} is too much: {shown(line)}")
        if line != other:
            return Judged(0.0, f"line {place} is {shown(line)}, expected {shown(other)}")
    return MATCH


def _lines(raw: bytes, options: _Options) -> list[str]:
    # As upstream's, lines also end at a form feed, U+2028 and what else splitlines() takes for an end of line.
    lines = [options.normal(line) for line in raw.decode(errors="ignore").splitlines()]
    return sorted(lines) if options.ignore_order else lines


def _strict(result: bytes, wanted: Sequence[_Row], options: _Options) -> Judged:
    try:
        found = _rows(result, options)
    except _Unreadable as error:
        return Judged(0.0, str(error))
    if found[:1] != wanted[:1]:
        return Judged(0.0, f"the header is {shown(_line(found[:1]))}, expected {shown(_line(wanted[:1]))}")
    if len(found) != len(wanted):
        return Judged(0.0, f"the table has {len(found) - 1} rows, expected {len(wanted) - 1}")
    rows, others = (_in_free_order(table[1:], wanted[1:], options) for table in (found, wanted))
    for place, (row, other) in enumerate(zip(rows, others, strict=True), start=1):
        if len(row) != len(other) or not all(map(is_same_number, row, other)):
            return Judged(0.0, f"row {place} is {shown(_line([row]))}, expected {shown(_line([other]))}")
    return MATCH


def _in_free_order(rows: Sequence[_Row], gold: Sequence[_Row], options: _Options) -> list[_Row]:
    """Sort those runs of rows whose order does not matter."""
    if options.ignore_order:
        return sorted(rows)
    columns = _sorted_columns(gold)
    if not columns:
        return list(rows)
    ordered: list[_Row] = []
    for _, run in groupby(gold, key=lambda row: [row[column] for column in columns]):
        length = len(list(run))
        ordered.extend(sorted(rows[len(ordered) : len(ordered) + length]))
    return ordered


def _sorted_columns(rows: Sequence[_Row]) -> list[int]:
    """Find the columns of numbers, not all equal, by which the rows are in ascending or descending order."""
    if len({len(row) for row in rows}) != 1:
        return []
    columns = []
    for place, cells in enumerate(zip(*rows, strict=True)):
        if not all(_NUMBER.fullmatch(cell) for cell in cells):
            continue
        numbers = [float(cell) for cell in cells]
        if numbers[0] != numbers[-1] and numbers in (sorted(numbers), sorted(numbers, reverse=True)):
            columns.append(place)
    return columns


def _rows(raw: bytes, options: _Options) -> list[_Row]:
    if len(raw) > MAX_CSV_BYTES:
        raise _Unreadable(f"the file is larger than {MAX_CSV_BYTES // 1024**2} MiB")
    try:
        text = raw.decode("utf-8-sig")
        rows = [tuple(options.normal(cell) for cell in row) for row in csv.reader(io.StringIO(text, newline=""))]
    except UnicodeDecodeError as error:
        raise _Unreadable(f"the file is not UTF-8 text (byte {error.start})") from error
    except csv.Error as error:
        raise _Unreadable(f"the file is no table: {error}") from error
    while rows and not rows[-1]:
        rows.pop()
    return rows


def _line(rows: Sequence[_Row]) -> str:
    return ",".join(rows[0]) if rows else ""
