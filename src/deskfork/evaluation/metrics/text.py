"""Metrics on plain text."""

import re
from collections.abc import Sequence

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.metrics.judged import MATCH, Comparison, Judged, shown

MAX_TEXT_BYTES = 32 * 1024 * 1024


def check_include_exclude(result: str, *, include: Sequence[str], exclude: Sequence[str]) -> Comparison:
    """Look for strings in a text.

    upstream: as parts of the text, anywhere.

    strict: what must be in it must stand there as a whole word or number, and a text of blanks alone, as a script that
    failed prints, passes no check.

    Args:
        result: The text.
        include: Strings that all must be in it.
        exclude: Strings of which none may be in it.

    Returns:
        1.0 if both hold, else 0.0.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/metrics/general.py, `check_include_exclude`.
    """
    upstream = _included(result, include, exclude, is_word_wanted=False)
    if not result.strip():
        return Comparison(upstream, Judged(0.0, "there is no text"))
    return Comparison(upstream, _included(result, include, exclude, is_word_wanted=True))


def _included(text: str, include: Sequence[str], exclude: Sequence[str], *, is_word_wanted: bool) -> Judged:
    for wanted in include:
        if wanted not in text:
            return Judged(0.0, f"{shown(wanted)} is not in {shown(text, 160)}")
        if is_word_wanted and not _as_word(wanted).search(text):
            return Judged(0.0, f"{shown(wanted)} is only part of a word in {shown(text, 160)}")
    for unwanted in exclude:
        if unwanted in text:
            return Judged(0.0, f"{shown(unwanted)} is in {shown(text, 160)}")
    return MATCH


def _as_word(wanted: str) -> re.Pattern[str]:
    before = r"(?<![\w-])(?<!\w\.)" if re.match(r"\w", wanted) else ""
    after = r"(?![\w-]|\.\w)" if re.search(r"\w\Z", wanted) else ""
    return re.compile(before + re.escape(wanted) + after)


def compare_text_file(
    result: bytes, gold: bytes, *, ignore_blanks: bool = False, ignore_case: bool = False
) -> Comparison:
    """Compare two text files.

    upstream: as UTF-8 texts; with `ignore_blanks` every run of white space, line ends and indentation too, counts as
    one blank.

    strict: line by line. Kinds of line ends, a byte order mark and the last line's end do not count; with
    `ignore_blanks` neither do blank lines, blanks at line ends and tabs for blanks, but line ends and indentation do,
    without which code is another.

    Args:
        result: The guest's file.
        gold: The gold file.
        ignore_blanks: Whether white space counts less.
        ignore_case: Whether `a` equals `A`.

    Returns:
        1.0 or 0.0 for each. What is no UTF-8 text is 0.0: upstream's runner takes the exception for that. Files of more
        than `MAX_TEXT_BYTES` are 0.0 for both, though upstream would read them.

    Raises:
        EvaluationError: The gold file is no UTF-8 text, or too large.

    Source: xlang-ai/OSWorld, desktop_env/evaluators/metrics/vscode.py, `compare_text_file`, which Spider2-V imports.
    """
    try:
        wanted = _decoded(gold)
    except ValueError as error:
        raise EvaluationError(f"the gold file cannot be compared with: {error}") from error
    try:
        found = _decoded(result)
    except ValueError as error:
        return Comparison.agreed(Judged(0.0, str(error)))
    if ignore_case:
        found, wanted = found.lower(), wanted.lower()
    return Comparison(_upstream_text(found, wanted, ignore_blanks), _strict_text(found, wanted, ignore_blanks))


def _decoded(raw: bytes) -> str:
    if len(raw) > MAX_TEXT_BYTES:
        raise ValueError(f"the file is larger than {MAX_TEXT_BYTES // 1024**2} MiB")
    try:
        return raw.decode().replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"the file is not UTF-8 text (byte {error.start})") from error


def _upstream_text(found: str, wanted: str, ignore_blanks: bool) -> Judged:
    if ignore_blanks:
        found, wanted = " ".join(found.split()), " ".join(wanted.split())
    if found == wanted:
        return MATCH
    pairs = enumerate(zip(found, wanted, strict=False))
    first = next((place for place, (one, other) in pairs if one != other), min(len(found), len(wanted)))
    return Judged(0.0, f"the text has {shown(found[first:])}, expected {shown(wanted[first:])}")


def _strict_text(found: str, wanted: str, ignore_blanks: bool) -> Judged:
    lines, others = _text_lines(found, ignore_blanks), _text_lines(wanted, ignore_blanks)
    for place, (line, other) in enumerate(zip(lines, others, strict=False), start=1):
        if line != other:
            return Judged(0.0, f"line {place} is {shown(line)}, expected {shown(other)}")
    if len(lines) != len(others):
        return Judged(0.0, f"the text has {len(lines)} lines, expected {len(others)}")
    return MATCH


def _text_lines(text: str, ignore_blanks: bool) -> list[str]:
    text = text.removeprefix("\ufeff")
    if not ignore_blanks:
        return text.removesuffix("\n").split("\n")
    return [line.expandtabs(4).rstrip() for line in text.split("\n") if line.strip()]
