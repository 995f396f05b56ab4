"""Guards the metrics on notebooks: what both verdicts accept and refuse, and notebooks made to break the reader."""

import json
from typing import Any

import pytest
from notebook_parts import code, displayed, failed, markdown, notebook, printed, returned

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.metrics.notebooks import (
    are_jupyter_outputs_cleared,
    compare_ipynb_files,
    compare_notebook_cells,
    compare_notebook_outputs,
    is_jupyter_cell_executed,
)
from deskfork.evaluation.metrics.notebooks.reading import MAX_NOTEBOOK_BYTES

LOAD = code("data = load()", count=1)
SCORE = code("print(score)\nrows", printed("Accuracy: 1.0\n"), returned("20", 2, text_html="<b>20</b>"), count=2)
RUN = notebook(markdown(), LOAD, SCORE)
UNRUN = notebook(markdown(), code("data = load()"), code("print(score)\nrows"))
WARNING = printed("FutureWarning: …", name="stderr")
BROKEN = [
    b"",
    b"[]",
    b"null",
    b"\xff\xfe",
    RUN[:-20],
    RUN.decode().encode("utf-16"),
    b"[" * 100_000,
    b'{"cells":' * 50_000,
    b'{"nbformat": 4, "cells": ' + b"9" * 5000 + b"}",
    notebook(metadata=None, cells=[5]),
    notebook(nbformat=5),
    notebook(nbformat="4"),
    notebook(1, 2, 3),
    notebook(markdown(), {"cell_type": "code"}, code("x")),
    notebook(markdown(), code("data = load()", 5, count=1), SCORE),
    notebook(markdown(), LOAD, code("x", printed(5), count=2)),
    b" " * (MAX_NOTEBOOK_BYTES + 1),
]


def test_a_notebook_written_otherwise_is_the_same() -> None:
    lines = code(["print(score)\n", "rows"], printed(["Accuracy:", " 1.0\n"]), returned(["20"], 2), count=2)
    compared = compare_notebook_outputs(notebook(markdown(["# Title"]), LOAD, lines), RUN, original=UNRUN)
    assert (compared.upstream, compared.strict) == (1.0, 1.0)


@pytest.mark.parametrize(
    "cells",
    [
        (markdown(), code("data = load()", WARNING, count=1), SCORE),
        (
            markdown(),
            code("data = load()", count=4),
            code(SCORE["source"], *SCORE["outputs"][:1], returned("20", 5), count=5),
        ),
        (markdown(), code("# mine\ndata = load()\nmore()", count=1), SCORE),
        (markdown(), code("data = load(1)", count=1), SCORE),
    ],
    ids=["a warning", "run later", "lines added", "a line mended"],
)
def test_outputs_that_both_accept(cells: tuple[Any, ...]) -> None:
    compared = compare_notebook_outputs(notebook(*cells), RUN, original=UNRUN)
    assert (compared.upstream, compared.strict) == (1.0, 1.0)


@pytest.mark.parametrize(
    "cells",
    [
        (markdown(), LOAD, code(SCORE["source"], printed("Accuracy: 0.7\n"), returned("20", 2), count=2)),
        (markdown(), LOAD, code(SCORE["source"], printed("Accuracy: 1.0\n"), returned("21", 2), count=2)),
        (markdown(), LOAD, code(SCORE["source"], returned("20", 2), printed("Accuracy: 1.0\n"), count=2)),
        (markdown(), LOAD, code(SCORE["source"], printed("Accuracy: 1.0\n"), count=2)),
        (markdown(), LOAD, code(SCORE["source"], printed("Accuracy: 1.0\n"), displayed("20"), displayed("1"), count=2)),
        (markdown(), LOAD, code(SCORE["source"], printed("Accuracy: 1.0\n"), returned("20", 2), failed(), WARNING)),
        (markdown(), LOAD, SCORE, code("print(2)", printed("2\n"), count=3)),
        (markdown(), SCORE),
        (LOAD, markdown(), SCORE),
        (),
    ],
    ids=[
        "printed",
        "returned",
        "order",
        "lacking",
        "too much",
        "not run",
        "cell added",
        "cell dropped",
        "moved",
        "no cells",
    ],
)
def test_outputs_that_strict_refuses(cells: tuple[Any, ...]) -> None:
    compared = compare_notebook_outputs(notebook(*cells), RUN, original=UNRUN)
    assert compared.strict == 0.0
    assert compared.strict.detail


@pytest.mark.parametrize(
    "source",
    [
        "!pip install nltk",
        "# mine\n%pip install -q nltk",
        "!{sys.executable} -m pip install nltk",
        'import nltk\nnltk.download("stopwords")',
        'import nltk; nltk.download("stopwords")',
    ],
)
def test_cells_that_only_install_something_do_not_count(source: str) -> None:
    added = code(source, printed("…"), returned("True", 9), count=9)
    assert compare_notebook_outputs(notebook(added, markdown(), LOAD, SCORE), RUN, original=UNRUN).strict == 1.0
    other = code(source + "\nprint(1)", count=9)
    assert compare_notebook_outputs(notebook(other, markdown(), LOAD, SCORE), RUN, original=UNRUN).strict == 0.0


def test_numbers_of_few_digits_are_not_noise() -> None:
    gold = notebook(code("x", printed("0.203 3 1e-3"), count=1))
    for text in ("0.204 3 1e-3", "0.203 4 1e-3", "0.203 3.0 1e-3", "0.2030 3 1e-3", "0.203 3 2e-3"):
        compared = compare_notebook_outputs(notebook(code("x", printed(text), count=1)), gold)
        assert (compared.upstream, compared.strict) == (0.0, 0.0), text


def test_the_detail_shows_the_line_that_differs() -> None:
    same = "".join(f"{number}\n" for number in range(1000))
    compared = compare_notebook_outputs(
        notebook(code("x", printed(same + "here"), count=1)), notebook(code("x", printed(same + "there"), count=1))
    )
    for judged in (compared.upstream, compared.strict):
        assert "'here'" in judged.detail
        assert "'there'" in judged.detail


@pytest.mark.parametrize(
    ("result", "score"),
    [
        (UNRUN, 1.0),
        (RUN, 1.0),
        (notebook(markdown(), code("data = load()"), code("print(score)")), 0.0),
        (notebook(markdown(), code("data = load()\nprint(score)\nrows")), 0.0),
        (notebook(markdown(), code("print(score)\nrows"), code("data = load()")), 0.0),
        (notebook(markdown(), code("data = load()"), markdown("print(score)\nrows")), 0.0),
        (notebook(), 0.0),
    ],
)
def test_cells_are_compared_by_kind_and_source(result: bytes, score: float) -> None:
    compared = compare_notebook_cells(result, RUN)
    assert (compared.upstream, compared.strict) == (score, score)
    assert bool(compared.strict.detail) == bool(compared.upstream.detail) == (score == 0.0)


@pytest.mark.parametrize(
    ("result", "score"),
    [
        (UNRUN, 1.0),
        (json.dumps(json.loads(UNRUN), indent=1).replace("\n", "\r\n").encode(), 1.0),
        (RUN, 0.0),
        (notebook(markdown(), code("data = load()")), 0.0),
        (notebook(markdown(), code("data = load()"), code("print(score)")), 0.0),
        (notebook(markdown(), code("print(score)\nrows"), code("data = load()")), 0.0),
        (notebook(), 0.0),
    ],
)
def test_notebooks_are_compared_as_documents(result: bytes, score: float) -> None:
    compared = compare_ipynb_files(result, UNRUN)
    assert (compared.upstream, compared.strict) == (score, score)
    assert bool(compared.strict.detail) == bool(compared.upstream.detail) == (score == 0.0)


@pytest.mark.parametrize("original", [None, UNRUN])
def test_a_notebook_is_run_when_all_its_code_is(original: bytes | None) -> None:
    assert is_jupyter_cell_executed(RUN, original=original).strict == 1.0
    assert is_jupyter_cell_executed(RUN, original=original).upstream == 1.0
    half = is_jupyter_cell_executed(notebook(markdown(), LOAD, code("print(score)\nrows")), original=original)
    assert (half.upstream, half.strict) == (0.0, 0.0)
    assert half.upstream.detail
    assert half.strict.detail


@pytest.mark.parametrize("original", [None, RUN])
def test_a_notebook_is_cleared_when_all_its_code_is(original: bytes | None) -> None:
    assert are_jupyter_outputs_cleared(UNRUN, original=original).strict == 1.0
    assert are_jupyter_outputs_cleared(UNRUN, original=original).upstream == 1.0
    half = are_jupyter_outputs_cleared(notebook(markdown(), code("data = load()"), SCORE), original=original)
    assert (half.upstream, half.strict) == (0.0, 0.0)
    assert half.upstream.detail
    assert half.strict.detail


@pytest.mark.parametrize("raw", BROKEN)
def test_what_is_no_notebook_is_zero_in_both_verdicts(raw: bytes) -> None:
    for compared in (
        compare_notebook_outputs(raw, RUN, original=UNRUN),
        compare_notebook_cells(raw, RUN),
        compare_ipynb_files(raw, RUN),
        is_jupyter_cell_executed(raw, original=UNRUN),
        are_jupyter_outputs_cleared(raw, original=RUN),
    ):
        assert compared.strict == 0.0
        assert compared.strict.detail


@pytest.mark.parametrize("gold", [b"", b"{}", b"[" * 100_000, notebook(nbformat=3), notebook(1)])
def test_a_notebook_of_the_tasks_own_that_is_none_is_refused_not_scored(gold: bytes) -> None:
    for compare in (compare_notebook_outputs, compare_notebook_cells, compare_ipynb_files):
        with pytest.raises(EvaluationError, match="gold notebook"):
            compare(RUN, gold)
    for ask in (is_jupyter_cell_executed, are_jupyter_outputs_cleared):
        with pytest.raises(EvaluationError, match="original notebook"):
            ask(RUN, original=gold)
    with pytest.raises(EvaluationError, match="original notebook"):
        compare_notebook_outputs(RUN, RUN, original=gold)
