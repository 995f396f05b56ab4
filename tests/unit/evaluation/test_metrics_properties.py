"""Guards every metric against files made to break it: whatever the bytes, there is a verdict, and always the same."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notebook_parts import code, displayed, failed, markdown, notebook, printed, returned
from test_metrics_images import GOLD as PICTURE

from deskfork.evaluation.metrics.images import compare_jupyterlab_images
from deskfork.evaluation.metrics.judged import Comparison
from deskfork.evaluation.metrics.notebooks import (
    are_jupyter_outputs_cleared,
    compare_ipynb_files,
    compare_notebook_cells,
    compare_notebook_outputs,
    is_jupyter_cell_executed,
)
from deskfork.evaluation.metrics.tables import compare_csv
from deskfork.evaluation.metrics.text import check_include_exclude, compare_text_file
from deskfork.evaluation.metrics.urls import is_expected_url_pattern_match

TABLE = "Season,Games,Größe\nWinter,22,1.5\nSummer,29,\n".encode()
NOTEBOOK = notebook(
    markdown(["# Title\n", "text"]),
    code("import x", count=1),
    code("x.shape", printed("a 1.5\n"), printed("w", "stderr"), returned(["20"], 2, text_html="<b>20</b>"), count=2),
    code("plot", displayed("<Figure>", image_png="iVBORw0KGgo="), failed(), count=3),
    code(""),
)
URL = b"http://localhost:1036/lab/tree/Model.ipynb"

Judge = Callable[[bytes], Comparison]
patient = settings(deadline=None)  # the first notebook has nbformat compile its schema
ON_NOTEBOOKS: dict[str, Judge] = {
    "compare_notebook_outputs": lambda raw: compare_notebook_outputs(raw, NOTEBOOK, original=NOTEBOOK),
    "compare_notebook_cells": lambda raw: compare_notebook_cells(raw, NOTEBOOK),
    "compare_ipynb_files": lambda raw: compare_ipynb_files(raw, NOTEBOOK),
    "is_jupyter_cell_executed": lambda raw: is_jupyter_cell_executed(raw, original=NOTEBOOK),
    "are_jupyter_outputs_cleared": lambda raw: are_jupyter_outputs_cleared(raw, original=NOTEBOOK),
}
JUDGES: dict[str, tuple[Judge, bytes]] = {
    "compare_csv": (lambda raw: compare_csv(raw, TABLE), TABLE),
    "compare_csv, free": (
        lambda raw: compare_csv(raw, TABLE, strict=False, ignore_case=True, ignore_order=True),
        TABLE,
    ),
    "check_include_exclude": (
        lambda raw: check_include_exclude(raw.decode(errors="surrogateescape"), include=["22"], exclude=["x"]),
        TABLE,
    ),
    "compare_text_file": (lambda raw: compare_text_file(raw, TABLE), TABLE),
    "compare_text_file, free": (lambda raw: compare_text_file(raw, TABLE, ignore_blanks=True, ignore_case=True), TABLE),
    "compare_jupyterlab_images": (lambda raw: compare_jupyterlab_images(raw, PICTURE), PICTURE),
    "is_expected_url_pattern_match": (
        lambda raw: is_expected_url_pattern_match(
            raw.decode(errors="surrogateescape"), patterns=["http://localhost:1036", "Model"]
        ),
        URL,
    ),
    **{name: (judge, NOTEBOOK) for name, judge in ON_NOTEBOOKS.items()},
}

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**400, max_value=10**401)
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.sampled_from(["code", "markdown", "stdout", "stream", "error", "\ud800", "0x7f", "!pip install x", "4"])
)
KEYS = st.sampled_from(
    [
        *("cells", "nbformat", "nbformat_minor", "metadata", "worksheets"),
        *("cell_type", "source", "outputs", "execution_count", "id", "input"),
        *("output_type", "name", "text", "data", "text/plain", "text/html", "image/png", "ename"),
    ]
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))


def check(judge: Judge, raw: bytes) -> None:
    compared = judge(raw)
    for judged in (compared.upstream, compared.strict):
        assert judged in (0.0, 1.0)
        assert bool(judged.detail) == (judged == 0.0)
        assert judged.detail.isprintable()
    assert judge(raw) == compared


@pytest.mark.parametrize("name", JUDGES)
@patient
@given(raw=st.binary(max_size=200))
def test_no_bytes_make_a_metric_raise(name: str, raw: bytes) -> None:
    check(JUDGES[name][0], raw)


@pytest.mark.parametrize("name", JUDGES)
@patient
@given(data=st.data())
def test_no_damage_to_the_gold_file_makes_a_metric_raise(name: str, data: st.DataObject) -> None:
    judge, gold = JUDGES[name]
    places = st.integers(min_value=0, max_value=len(gold) - 1)
    raw = bytearray(gold)
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        raw[place] = byte
    start, end = sorted((data.draw(places), data.draw(places)))
    if data.draw(st.booleans()):
        del raw[start:end]
    elif data.draw(st.booleans()):
        del raw[end:]
    check(judge, bytes(raw))


@pytest.mark.parametrize("name", ON_NOTEBOOKS)
@patient
@given(document=JSON)
def test_no_json_makes_a_metric_raise(name: str, document: Any) -> None:
    check(ON_NOTEBOOKS[name], json.dumps(document).encode())


@pytest.mark.parametrize("name", ON_NOTEBOOKS)
@patient
@given(cells=st.lists(JSON, max_size=4), minor=st.integers(-1, 6), major=st.integers(1, 5))
def test_no_cells_make_a_metric_raise(name: str, cells: list[Any], minor: int, major: int) -> None:
    check(ON_NOTEBOOKS[name], notebook(*cells, nbformat=major, nbformat_minor=minor))


@st.composite
def nearly_right(draw: st.DrawFn) -> bytes:
    """The gold notebook with something else somewhere."""
    document = json.loads(NOTEBOOK)
    holder: Any = document
    while True:
        place = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        inner = holder[place]
        if not isinstance(inner, dict | list) or not inner or draw(st.integers(0, 3)) == 0:
            break
        holder = inner
    if draw(st.booleans()):
        del holder[place]
    else:
        holder[place] = draw(JSON)
    return json.dumps(document).encode()


@pytest.mark.parametrize("name", ON_NOTEBOOKS)
@patient
@given(raw=nearly_right())
def test_no_change_within_the_gold_notebook_makes_a_metric_raise(name: str, raw: bytes) -> None:
    check(ON_NOTEBOOKS[name], raw)


@pytest.mark.parametrize("deep", [b"[" * 3000 + b"]" * 3000, b'{"a":' * 3000 + b"1" + b"}" * 3000])
@pytest.mark.parametrize("name", ON_NOTEBOOKS)
def test_no_depth_makes_a_metric_raise(name: str, deep: bytes) -> None:
    check(ON_NOTEBOOKS[name], deep)
    check(ON_NOTEBOOKS[name], NOTEBOOK.replace(b'"import x"', deep))
    check(ON_NOTEBOOKS[name], NOTEBOOK.replace(b'"metadata": {}', b'"metadata": {"a": ' + deep + b"}"))


OUTPUTS = st.one_of(
    st.builds(printed, st.text()), st.builds(displayed, st.text()), st.builds(displayed, st.text(), text_html=st.text())
)


@patient
@given(st.lists(st.tuples(st.text(), st.lists(OUTPUTS, max_size=3))))
def test_a_notebook_equals_itself(cells: list[tuple[str, list[Any]]]) -> None:
    raw = notebook(*(code(source, *seen, count=place) for place, (source, seen) in enumerate(cells, start=1)))
    for compared in (
        compare_notebook_outputs(raw, raw, original=raw),
        compare_notebook_cells(raw, raw),
        compare_ipynb_files(raw, raw),
    ):
        assert (compared.upstream, compared.strict) == (1.0, 1.0)


@patient
@given(st.text(st.characters(exclude_categories=["Cs"])), st.booleans(), st.booleans(), st.booleans())
def test_a_text_equals_itself(text: str, strict: bool, ignore_case: bool, ignore_order: bool) -> None:
    raw = text.encode()
    for compared in (
        compare_csv(raw, raw, strict=strict, ignore_case=ignore_case, ignore_order=ignore_order),
        compare_text_file(raw, raw, ignore_blanks=strict, ignore_case=ignore_case),
    ):
        assert (compared.upstream, compared.strict) == (1.0, 1.0)
