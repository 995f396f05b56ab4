"""Guards the notebook metric: outputs that count or do not, and notebooks made to break the parser."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.metrics.notebooks import MAX_NOTEBOOK_BYTES, compare_notebook_outputs


def stdout(text: Any) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def displayed(text: Any, **further: str) -> dict[str, Any]:
    return {
        "output_type": "execute_result",
        "execution_count": 7,
        "metadata": {},
        "data": {"text/plain": text, **further},
    }


def code(*outputs: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": "x", "metadata": {}, "execution_count": 1, "outputs": list(outputs)}


def markdown() -> dict[str, Any]:
    return {"cell_type": "markdown", "source": "# x", "metadata": {}}


def notebook(*cells: Any, **further: Any) -> bytes:
    return json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": list(cells), **further}).encode()


STDERR = {"output_type": "stream", "name": "stderr", "text": "FutureWarning: …"}
ERROR = {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}
IMAGE = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "iVBO"}}
PIP = stdout("Requirement already satisfied: pandas")
GOLD = notebook(markdown(), code(), code(stdout("Accuracy: 1.0\n"), displayed("20")))


@pytest.mark.parametrize(
    ("result", "score"),
    [
        (GOLD, 1.0),
        (notebook(markdown(), code(), code(stdout(["Accuracy:", " 1.0\n"]), displayed(["20"]))), 1.0),
        (
            notebook(markdown(), code(STDERR), code(STDERR, stdout("Accuracy: 1.0\n"), IMAGE, displayed("20"), ERROR)),
            1.0,
        ),
        (notebook(markdown(), code(PIP), code(stdout("Accuracy: 1.0\n"), displayed("20"))), 1.0),
        (notebook(markdown(), code(), code(stdout("Accuracy: 1.0\n"), displayed("20", **{"text/html": "<b>"}))), 1.0),
        (notebook(markdown(), code(), code(stdout("Accuracy: 0.7\n"), displayed("20"))), 0.0),
        (notebook(markdown(), code(), code(stdout("Accuracy: 1.0\n"), displayed("21"))), 0.0),
        (notebook(markdown(), code(), code(displayed("20"), stdout("Accuracy: 1.0\n"))), 0.0),
        (notebook(markdown(), code(), code(stdout("Accuracy: 1.0\n"))), 0.0),
        (notebook(markdown(), code(), code(stdout("Accuracy: 1.0\n"), displayed("20")), code()), 0.0),
        (notebook(code(), markdown(), code(stdout("Accuracy: 1.0\n"), displayed("20"))), 0.0),
        (notebook(), 0.0),
        (b"", 0.0),
        (b"{}", 0.0),
        (b"null", 0.0),
        (b"[]", 0.0),
        (b"\xff\xfe", 0.0),
        (b"\xef\xbb\xbf" + GOLD, 0.0),
        (GOLD[:-20], 0.0),
        (b"[" * 100_000, 0.0),
        (b'{"cells":' * 50_000, 0.0),
        (b'{"nbformat": 4, "cells": ' + b"9" * 5000 + b"}", 0.0),
        (b'{"nbformat": 4, "cells": NaN}', 0.0),
        (notebook(markdown(), nbformat=3), 0.0),
        (notebook(1, 2, 3), 0.0),
        (notebook(markdown(), {"cell_type": "code"}, code()), 0.0),
        (notebook(markdown(), code(), code(5)), 0.0),
        (notebook(markdown(), code(), code(stdout(5), displayed("20"))), 0.0),
        (notebook(markdown(), code(), code(stdout("Accuracy: 1.0\n"), displayed({"a": 1}))), 0.0),
        (b" " * (MAX_NOTEBOOK_BYTES + 1), 0.0),
    ],
)
def test_notebooks_are_compared_by_their_text_outputs(result: bytes, score: float) -> None:
    judged = compare_notebook_outputs(result, GOLD)
    assert judged == score
    assert bool(judged.detail) == (score == 0.0)


@pytest.mark.parametrize("gold", [b"", b"{}", b"[" * 100_000, notebook(markdown(), nbformat=3), notebook(1)])
def test_a_gold_notebook_that_is_none_is_refused_not_scored(gold: bytes) -> None:
    with pytest.raises(EvaluationError, match="gold notebook"):
        compare_notebook_outputs(GOLD, gold)


def test_pip_lines_in_the_gold_notebook_count() -> None:
    assert compare_notebook_outputs(notebook(code(PIP)), notebook(code(PIP))) == 0.0


def test_the_detail_shows_the_line_that_differs() -> None:
    same = "".join(f"{number}\n" for number in range(1000))
    judged = compare_notebook_outputs(notebook(code(stdout(same + "here"))), notebook(code(stdout(same + "there"))))
    assert "'here'" in judged.detail
    assert "'there'" in judged.detail


OUTPUTS = st.one_of(st.builds(stdout, st.text()), st.builds(displayed, st.text()), st.just(STDERR), st.just(IMAGE))
CELLS = st.lists(st.one_of(st.just(markdown()), st.lists(OUTPUTS, max_size=3).map(lambda outputs: code(*outputs))))
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["cells", "nbformat", "cell_type", "outputs", "name", "text", "data"]), inner)
    ),
)


@given(CELLS)
def test_every_notebook_equals_itself(cells: list[Any]) -> None:
    raw = notebook(*cells)
    pip = any(line in raw.decode() for line in ("Requirement already satisfied:", "Successfully installed"))
    assert pip or compare_notebook_outputs(raw, raw) == 1.0


@given(st.binary())
def test_no_bytes_make_the_notebook_metric_raise(raw: bytes) -> None:
    assert compare_notebook_outputs(raw, GOLD) == 0.0


@given(st.lists(JSON))
def test_no_json_makes_the_notebook_metric_raise(cells: list[Any]) -> None:
    assert 0.0 <= compare_notebook_outputs(notebook(*cells), GOLD) <= 1.0
