"""Guards the metrics on text, tables and addresses: a wrong answer that scores, a right one that does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.metrics.judged import MAX_DETAIL_CHARS, Judged
from deskfork.evaluation.metrics.tables import MAX_CSV_BYTES, compare_csv
from deskfork.evaluation.metrics.text import MAX_TEXT_BYTES, check_include_exclude, compare_text_file
from deskfork.evaluation.metrics.urls import MAX_URL_CHARS, is_expected_url_pattern_match

GOLD = b"Season,Total # of Games\nWinter,22\nSummer,29\n"
TURNED = b"Season,Total # of Games\nSummer,29\nWinter,22\n"


@pytest.mark.parametrize(
    ("result", "options", "score"),
    [
        (GOLD, {}, 1.0),
        (GOLD.rstrip(b"\n"), {}, 1.0),
        (GOLD.replace(b"\n", b"\r\n"), {}, 1.0),
        (GOLD.replace(b"\n", b"\r"), {}, 1.0),
        (b"Season,Total # of Games\nWinter,\nSummer,\n", {}, 0.0),
        (b"", {}, 0.0),
        (GOLD[:30], {}, 0.0),
        (GOLD + b"Spring,1\n", {}, 0.0),
        (GOLD.replace(b"22", b"23"), {}, 0.0),
        (GOLD.replace(b"22", b"22.0"), {}, 0.0),
        (GOLD.replace(b"22", b"022"), {}, 0.0),
        (GOLD.replace(b"Season", b"season"), {}, 0.0),
        (b"Total # of Games,Season\n22,Winter\n29,Summer\n", {}, 0.0),
        (b",Season,Total # of Games\n0,Winter,22\n1,Summer,29\n", {}, 0.0),
        (GOLD.replace(b",", b";"), {}, 0.0),
        (TURNED, {}, 0.0),
        (TURNED, {"ignore_order": True}, 1.0),
        (GOLD.replace(b"Winter", b"winter"), {}, 0.0),
        (GOLD.replace(b"Winter", b"winter"), {"ignore_case": True}, 1.0),
        (GOLD.replace(b"\n", b" \n"), {}, 0.0),
        (GOLD.replace(b"\n", b" \n"), {"strict": False}, 1.0),
        (GOLD.decode().encode("utf-16"), {}, 0.0),
        (b"\x80\x04\x95", {}, 0.0),
        (b"\n" * (MAX_CSV_BYTES + 1), {}, 0.0),
    ],
)
def test_csv_files_are_compared_by_their_rows(result: bytes, options: dict[str, bool], score: float) -> None:
    compared = compare_csv(result, GOLD, **options)
    assert (compared.upstream, compared.strict) == (score, score)
    assert bool(compared.upstream.detail) == bool(compared.strict.detail) == (score == 0.0)


def test_only_rows_that_are_tied_may_change_places() -> None:
    gold = b"name,films\nNew,63\nSci-Fi,61\nGames,61\nChildren,60\n"
    assert compare_csv(b"name,films\nSci-Fi,61\nNew,63\nGames,61\nChildren,60\n", gold).strict == 0.0
    assert compare_csv(b"name,films\nNew,63\nGames,61\nGames,61\nChildren,60\n", gold).strict == 0.0
    constant = b"id,year\n9,2019\n8,2019\n"
    assert compare_csv(b"id,year\n8,2019\n9,2019\n", constant).strict == 0.0
    unsorted = b"name,price\nb,1\na,3\nc,1\n"
    assert compare_csv(b"name,price\nc,1\na,3\nb,1\n", unsorted).strict == 0.0


@pytest.mark.parametrize("gold", [b"\xff\xfe", b"\n" * (MAX_CSV_BYTES + 1), b"x" * 200_000])
def test_a_gold_table_that_cannot_be_read_is_refused_not_scored(gold: bytes) -> None:
    with pytest.raises(EvaluationError, match="gold file"):
        compare_csv(GOLD, gold)


@given(st.lists(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1), min_size=1))
def test_the_order_of_lines_counts_only_when_it_shall(lines: list[str]) -> None:
    turned = list(reversed(lines))
    result, gold = "\n".join(["x", *turned]).encode(), "\n".join(["x", *lines]).encode()
    assert compare_csv(result, gold, ignore_order=True).strict == 1.0
    assert compare_csv(result, gold, ignore_order=True).upstream == 1.0
    assert compare_csv(result, gold).strict == compare_csv(result, gold).upstream == float(turned == lines)


@pytest.mark.parametrize(
    ("text", "include", "exclude", "score"),
    [
        ("python3 /usr/share\n", ["python3"], ["jupyterlab"], 1.0),
        ("python3\njupyterlab\n", ["python3"], ["jupyterlab"], 0.0),
        ("python3 /share/jupyterlab2\n", ["python3"], ["jupyterlab"], 0.0),
        ("", ["python3"], ["jupyterlab"], 0.0),
        ("anything", [], [], 1.0),
        ("Python3", ["python3"], [], 0.0),
        ("it is done.", ["done", "is done.", "it"], [], 1.0),
    ],
)
def test_texts_are_searched_for_strings(text: str, include: list[str], exclude: list[str], score: float) -> None:
    compared = check_include_exclude(text, include=include, exclude=exclude)
    assert (compared.upstream, compared.strict) == (score, score)


@given(st.text(), st.lists(st.text(min_size=1)))
def test_a_string_cannot_be_both_wanted_and_unwanted(text: str, strings: list[str]) -> None:
    both = check_include_exclude(text, include=strings, exclude=strings)
    assert both.upstream == (1.0 if not strings else 0.0)
    assert both.strict <= both.upstream


CODE = "Z = np.zeros(3)\ndef f(x):\n    return x  # Río\n\nprint(Z)"


@pytest.mark.parametrize(
    ("result", "score"),
    [
        (CODE, 1.0),
        (CODE + "\n\n", 1.0),
        ("\n" + CODE.replace("\n", "  \r\n"), 1.0),
        (CODE.replace("    ", "\t"), 1.0),
        (CODE.replace("\n", "\n\n"), 1.0),
        ("", 0.0),
        (CODE[:20], 0.0),
        (CODE.replace("3", "4"), 0.0),
        (CODE.replace("print(Z)", ""), 0.0),
        ("\n".join(reversed(CODE.split("\n"))), 0.0),
        ("# Title\n" + CODE, 0.0),
    ],
)
def test_code_is_compared_without_its_blank_lines(result: str, score: float) -> None:
    compared = compare_text_file(result.encode(), CODE.encode(), ignore_blanks=True)
    assert (compared.upstream, compared.strict) == (score, score)
    assert bool(compared.upstream.detail) == bool(compared.strict.detail) == (score == 0.0)


@pytest.mark.parametrize("raw", [CODE.encode("latin-1"), CODE.encode("utf-16"), b" " * (MAX_TEXT_BYTES + 1)])
def test_texts_in_another_encoding_are_zero_and_refused_as_gold(raw: bytes) -> None:
    compared = compare_text_file(raw, CODE.encode(), ignore_blanks=True)
    assert (compared.upstream, compared.strict) == (0.0, 0.0)
    with pytest.raises(EvaluationError, match="gold file"):
        compare_text_file(CODE.encode(), raw)


def test_case_and_blanks_count_unless_they_shall_not() -> None:
    assert compare_text_file(b"A\r\nb\n", b"A\nb\n").upstream == 1.0
    assert compare_text_file(b"A\r\nb\n", b"A\nb\n").strict == 1.0
    assert compare_text_file(b"A \nb\n", b"A\nb\n").strict == 0.0
    assert compare_text_file(b"a\nb\n", b"A\nB\n").strict == 0.0
    assert compare_text_file(b"a\nb\n", b"A\nB\n", ignore_case=True).strict == 1.0


PATTERNS = ["http://localhost:1036", r"Voting_Model\.ipynb"]


@pytest.mark.parametrize(
    ("url", "score"),
    [
        ("http://localhost:1036/lab/tree/Voting_Model.ipynb", 1.0),
        ("http://localhost:1036/lab/tree/Downloads/Voting_Model.ipynb?token=1#top", 1.0),
        ("http://localhost:1036/lab/workspaces/auto-X/tree/Voting_Model.ipynb", 1.0),
        ("http://localhost:1036/notebooks/Voting_Model.ipynb", 1.0),
        ("http://localhost:1036/lab", 0.0),
        ("http://localhost:8888/lab/tree/Voting_Model.ipynb", 0.0),
        ("https://localhost:1036/lab/tree/Voting_Model.ipynb", 0.0),
        ("http://localhost:1036/lab/tree/Voting_Model_ipynb", 0.0),
        ("chrome-error://chromewebdata/", 0.0),
        ("http://[", 0.0),
        ("", 0.0),
        ("http://localhost:1036/Voting_Model.ipynb" + "/" * MAX_URL_CHARS, 0.0),
    ],
)
def test_addresses_are_searched_for_patterns(url: str, score: float) -> None:
    compared = is_expected_url_pattern_match(url, patterns=PATTERNS)
    assert (compared.upstream, compared.strict) == (score, score)
    assert bool(compared.upstream.detail) == bool(compared.strict.detail) == (score == 0.0)


def test_a_pattern_that_is_none_is_refused_not_scored() -> None:
    with pytest.raises(EvaluationError, match="pattern"):
        is_expected_url_pattern_match("http://localhost", patterns=["("])


@given(st.text())
def test_details_stay_short(text: str) -> None:
    assert len(Judged(0.0, text * 50).detail) <= MAX_DETAIL_CHARS
