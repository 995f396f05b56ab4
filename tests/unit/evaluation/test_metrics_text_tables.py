"""Guards the metrics on text and tables: a wrong answer that scores, a right one that does not, a file that raises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.metrics.judged import MAX_DETAIL_CHARS, Judged
from deskfork.evaluation.metrics.tables import MAX_CSV_BYTES, compare_csv
from deskfork.evaluation.metrics.text import check_include_exclude

GOLD = b"Season,Total # of Games\nWinter,22\nSummer,29\n"


@pytest.mark.parametrize(
    ("result", "options", "score"),
    [
        (GOLD, {}, 1.0),
        (GOLD.rstrip(b"\n"), {}, 1.0),
        (GOLD.replace(b"\n", b"\r\n"), {}, 1.0),
        (b"Season,Total # of Games\nWinter,\nSummer,\n", {}, 0.0),
        (b"", {}, 0.0),
        (GOLD + b"\n", {}, 0.0),
        (GOLD + b"Spring,1\n", {}, 0.0),
        (GOLD.replace(b"22", b"22.0"), {}, 0.0),
        (b"Season,Total # of Games\nSummer,29\nWinter,22\n", {}, 0.0),
        (b"Season,Total # of Games\nSummer,29\nWinter,22\n", {"ignore_order": True}, 1.0),
        (b"Summer,29\nSeason,Total # of Games\nWinter,22\n", {"ignore_order": True}, 1.0),
        (GOLD.replace(b"Winter", b"winter"), {}, 0.0),
        (GOLD.replace(b"Winter", b"winter"), {"ignore_case": True}, 1.0),
        (GOLD.replace(b"\n", b" \n"), {}, 0.0),
        (GOLD.replace(b"\n", b" \n"), {"strict": False}, 1.0),
        (b"\xef\xbb\xbf" + GOLD, {}, 0.0),
        (GOLD.decode().encode("utf-16"), {}, 0.0),
        (b"\xff\xfe\x00", {}, 0.0),
        (b"\x80\x04\x95", {}, 0.0),
        (b"\n" * (MAX_CSV_BYTES + 1), {}, 0.0),
    ],
)
def test_csv_files_are_compared_line_by_line(result: bytes, options: dict[str, bool], score: float) -> None:
    judged = compare_csv(result, GOLD, **options)
    assert judged == score
    assert bool(judged.detail) == (score == 0.0)


@pytest.mark.parametrize("gold", [b"\xff\xfe", b"\n" * (MAX_CSV_BYTES + 1)])
def test_a_gold_table_that_cannot_be_read_is_refused_not_scored(gold: bytes) -> None:
    with pytest.raises(EvaluationError, match="gold file"):
        compare_csv(GOLD, gold)


@given(st.text(), st.booleans(), st.booleans(), st.booleans())
def test_every_text_equals_itself(text: str, strict: bool, ignore_case: bool, ignore_order: bool) -> None:
    raw = text.encode(errors="surrogatepass") if text.isprintable() else text.encode(errors="replace")
    assert compare_csv(raw, raw, strict=strict, ignore_case=ignore_case, ignore_order=ignore_order) == 1.0


@given(st.binary())
def test_no_bytes_make_the_table_metric_raise(raw: bytes) -> None:
    assert 0.0 <= compare_csv(raw, GOLD) <= 1.0


@given(st.lists(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1), min_size=1))
def test_the_order_of_lines_counts_only_when_it_shall(lines: list[str]) -> None:
    turned = list(reversed(lines))
    result, gold = "\n".join(turned).encode(), "\n".join(lines).encode()
    assert compare_csv(result, gold, ignore_order=True) == 1.0
    assert compare_csv(result, gold) == float(turned == lines)


@pytest.mark.parametrize(
    ("text", "include", "exclude", "score"),
    [
        ("python3 /usr/share\n", ["python3"], ["jupyterlab"], 1.0),
        ("python3\njupyterlab\n", ["python3"], ["jupyterlab"], 0.0),
        ("", ["python3"], ["jupyterlab"], 0.0),
        ("anything", [], [], 1.0),
        ("Python3", ["python3"], [], 0.0),
    ],
)
def test_texts_are_searched_for_strings(text: str, include: list[str], exclude: list[str], score: float) -> None:
    assert check_include_exclude(text, include=include, exclude=exclude) == score


@given(st.text(), st.lists(st.text(min_size=1)))
def test_a_string_cannot_be_both_wanted_and_unwanted(text: str, strings: list[str]) -> None:
    both = check_include_exclude(text, include=strings, exclude=strings)
    assert both == (1.0 if not strings else 0.0)


@given(st.text())
def test_details_stay_short(text: str) -> None:
    assert len(Judged(0.0, text * 50).detail) <= MAX_DETAIL_CHARS
