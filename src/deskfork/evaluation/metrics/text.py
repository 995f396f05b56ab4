"""Metrics on plain text."""

from collections.abc import Sequence

from deskfork.evaluation.metrics.judged import MATCH, Judged, shown


def check_include_exclude(result: str, *, include: Sequence[str], exclude: Sequence[str]) -> Judged:
    """Look for strings in a text.

    Args:
        result: The text.
        include: Strings that all must be in it.
        exclude: Strings of which none may be in it.

    Returns:
        1.0 if both hold, else 0.0.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/metrics/general.py, `check_include_exclude`.
    """
    for wanted in include:
        if wanted not in result:
            return Judged(0.0, f"{shown(wanted)} is not in {shown(result, 160)}")
    for unwanted in exclude:
        if unwanted in result:
            return Judged(0.0, f"{shown(unwanted)} is in {shown(result, 160)}")
    return MATCH
