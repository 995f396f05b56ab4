"""Metrics on addresses."""

import re
from collections.abc import Sequence
from urllib.parse import SplitResult, unquote, urlsplit

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.metrics.judged import MATCH, Comparison, Judged, shown

MAX_URL_CHARS = 8192
_OWN_MACHINE = ("localhost", "127.0.0.1", "[::1]")
_STARTS_WITH_SCHEME = re.compile(r"\^?https?\\?:")


def is_expected_url_pattern_match(url: str, *, patterns: Sequence[str]) -> Comparison:
    r"""Look for patterns in an address.

    upstream: anywhere in it, the query and longer port numbers included.

    strict: a pattern that begins with `http` must match from the address's start, up to the end of its port where it
    ends there; any other must be found in the path, as one or several whole segments. `localhost` has its other names.

    Args:
        url: The address of the tab in front; empty if there is none.
        patterns: Regular expressions that all must be found.

    Returns:
        1.0 if all are, else 0.0. Addresses of more than `MAX_URL_CHARS` are 0.0 for both, though upstream would search.

    Raises:
        EvaluationError: A pattern is no regular expression.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/metrics/chrome.py, `is_expected_url_pattern_match`.
    """
    try:
        compiled = [re.compile(pattern) for pattern in patterns]
    except re.error as error:
        raise EvaluationError(f"the task's pattern {shown(str(error.pattern))} is broken: {error}") from error
    if not url or len(url) > MAX_URL_CHARS:
        return Comparison.agreed(Judged(0.0, "there is no address" if not url else "the address is too long"))
    missing = next((pattern.pattern for pattern in compiled if not pattern.search(url)), None)
    upstream = MATCH if missing is None else Judged(0.0, f"{shown(missing)} is not in {shown(url, 160)}")
    return Comparison(upstream, _strict(url, compiled))


def _strict(url: str, patterns: Sequence[re.Pattern[str]]) -> Judged:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        return Judged(0.0, f"{shown(url, 160)} is no address: {error}")
    for pattern in patterns:
        if _STARTS_WITH_SCHEME.match(pattern.pattern):
            is_there = any(_has_origin(parts._replace(netloc=netloc), pattern) for netloc in _names(parts.netloc))
        else:
            is_there = _has_segment(unquote(parts.path), pattern)
        if not is_there:
            return Judged(0.0, f"{shown(pattern.pattern)} is not where it belongs in {shown(url, 160)}")
    return MATCH


def _names(netloc: str) -> tuple[str, ...]:
    host = re.sub(r":\d*\Z", "", netloc)
    port = netloc[len(host) :]
    return tuple(name + port for name in _OWN_MACHINE) if host in _OWN_MACHINE else (netloc,)


def _has_origin(parts: SplitResult, pattern: re.Pattern[str]) -> bool:
    match = pattern.match(parts.geturl())
    return match is not None and match.end() >= len(f"{parts.scheme}://{parts.netloc}")


def _has_segment(path: str, pattern: re.Pattern[str]) -> bool:
    for match in pattern.finditer(path):
        before, after = path[: match.start()], path[match.end() :]
        starts = not before or before.endswith("/") or match[0].startswith("/")
        if starts and (not after or after.startswith("/") or match[0].endswith("/")):
            return True
    return False
