"""Metrics on tables."""

from itertools import zip_longest

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.metrics.judged import MATCH, Judged, shown

MAX_CSV_BYTES = 32 * 1024 * 1024


def compare_csv(
    result: bytes, expected: bytes, *, strict: bool = True, ignore_case: bool = False, ignore_order: bool = False
) -> Judged:
    """Compare two CSV files as texts, line by line.

    Args:
        result: The guest's file.
        expected: The gold file.
        strict: Whether blanks at both ends of a line matter.
        ignore_case: Whether `a` equals `A`.
        ignore_order: Whether the lines, the header being one, may come in any order.

    Returns:
        1.0 if all lines are equal, else 0.0; no UTF-8 text is 0.0.

    Raises:
        EvaluationError: The gold file is no UTF-8 text, or too large.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/metrics/table.py, `compare_csv`.
    """
    gold = _lines(expected, strict=strict, ignore_case=ignore_case)
    if isinstance(gold, Judged):
        raise EvaluationError(f"the gold file cannot be compared with: {gold.detail}")
    found = _lines(result, strict=strict, ignore_case=ignore_case)
    if isinstance(found, Judged):
        return found
    if ignore_order:
        found, gold = sorted(found), sorted(gold)
    if found == gold:
        return MATCH
    for place, (line, wanted) in enumerate(zip_longest(found, gold), start=1):
        if line is None:
            return Judged(0.0, f"line {place} is missing: expected {shown(wanted)}")
        if wanted is None:
            return Judged(0.0, f"line {place} is too much: {shown(line)}")
        if line != wanted:
            return Judged(0.0, f"line {place} is {shown(line)}, expected {shown(wanted)}")
    return MATCH


def _lines(raw: bytes, *, strict: bool, ignore_case: bool) -> list[str] | Judged:
    if len(raw) > MAX_CSV_BYTES:
        return Judged(0.0, f"the file is larger than {MAX_CSV_BYTES // 1024**2} MiB")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        return Judged(0.0, f"the file is not UTF-8 text (byte {error.start})")
    # As upstream's, lines also end at a form feed, U+2028 and what else splitlines() takes for an end of line.
    lines = text.splitlines()
    if not strict:
        lines = [line.strip() for line in lines]
    return [line.lower() for line in lines] if ignore_case else lines
