"""Guards what tasks fetch from the web: another table than scikit-learn's, a page that its own gold contradicts."""

import gzip
import io
import json
import pickle
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from deskfork.core.errors import TaskError
from deskfork.tasks.spider2v.cal_housing import COLUMNS, ROWS, cached_table
from deskfork.tasks.spider2v.supplements import HOUSING_NAME, START_WEB, page_of, supply_steps

HOUSING_TASK = "30f3108a-0432-46b4-88cf-49acb42ad39b"
PAGE_TASK = "20030405-417c-425b-ab3f-6506b265ec85"
HEADER = (
    "longitude,latitude,housing_median_age,total_rooms,total_bedrooms,population,households,median_income,"
    "median_house_value"
)


class Numpy(pickle.Unpickler):
    """Takes apart the pickle of an array without numpy: what it was told to build it of."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numpy.core.multiarray", "_reconstruct"):
            return lambda kind, shape, code: Parts()
        return {("numpy", "ndarray"): Parts, ("numpy", "dtype"): lambda *how: Parts()}[module, name]


class Parts:
    """What an object was given as its state."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


def published(rows: int = ROWS) -> str:
    """Return a table as StatLib publishes it, whose values tell where they come from."""
    lines = (",".join(f"{row * 10 + column}.000000" for column in range(COLUMNS)) for row in range(rows))
    return "\n".join((HEADER, *lines)) + "\n"


def gold(html: str, text: str) -> dict[str, Any]:
    """Return a notebook that printed these, as JupyterLab stores it."""
    printed = [html.replace("\r\n", "\n") + "\n", text.replace("\r\n", "\n") + "\n"]
    outputs = [[{"output_type": "stream", "name": "stdout", "text": [each]}] for each in printed]
    return {"cells": [{"execution_count": 3 + n, "outputs": each} for n, each in enumerate(outputs)]}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DESKFORK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DESKFORK_DATASETS", raising=False)
    (tmp_path / "spider2-v").mkdir()
    (tmp_path / "datasets").mkdir()
    return tmp_path / "spider2-v"


def test_the_cached_table_is_an_array_in_scikit_learns_order() -> None:
    array = Numpy(io.BytesIO(zlib.decompress(cached_table(published())))).load()
    version, shape, _, is_fortran, content = array.state
    assert (version, shape, is_fortran) == (1, (ROWS, COLUMNS), False)
    assert struct.unpack_from("<9d", content, 72) == (18, 17, 12, 13, 14, 15, 16, 11, 10)
    assert len(content) == ROWS * COLUMNS * 8


@pytest.mark.parametrize(
    "text",
    ["", "a,b\n1,2\n", published(3), published().replace("\n10.0", "\nx", 1), published().replace("10.000000,", "", 1)],
)
def test_another_table_is_refused(text: str, checkout: Path) -> None:
    (checkout.parent / "datasets" / HOUSING_NAME).write_bytes(gzip.compress(text.encode()))
    with pytest.raises(TaskError, match="is not the table it should be"):
        supply_steps(HOUSING_TASK, checkout, checkout)


def test_a_missing_dataset_is_named_with_the_way_out(checkout: Path) -> None:
    with pytest.raises(TaskError, match=r"dataset .*cal_housing\.data\.gz is missing.*DESKFORK_DATASETS"):
        supply_steps(HOUSING_TASK, checkout, checkout)


def test_the_table_is_made_once_wherever_it_lies(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = checkout.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / HOUSING_NAME).write_bytes(gzip.compress(published().encode(), mtime=0))
    monkeypatch.setenv("DESKFORK_DATASETS", str(elsewhere))
    [step] = supply_steps(HOUSING_TASK, checkout, checkout)
    made = step.source.stat().st_mtime_ns
    assert step.target.name == "cal_housing_py3.pkz"
    assert supply_steps(HOUSING_TASK, checkout, checkout) == (step,)
    assert step.source.stat().st_mtime_ns == made


def test_the_page_prints_what_the_gold_notebook_printed(checkout: Path) -> None:
    head = "<html>\r\n<title>T</title>\r\n<p>\r\n"
    html = head + "x" * (2000 - len(head) - len("</p>\r\n<div>\r\nfirst wo")) + "</p>\r\n<div>\r\nfirst wo"
    rest = "rds & <more>\r\nsecond line\r\nthird\n\nlast"
    text = "T\n" + "x" * (2000 - len("T\n\n\r\nfirst wo") - len(rest)) + "\n\r\nfirst wo" + rest
    assert (len(html), len(text)) == (2000, 2000)
    page = page_of(gold(html, text))
    assert page.startswith(html)
    assert page.removeprefix(html).startswith("rds &amp; &lt;more&gt;\r\nsecond line\r\nthird\n\nlast")
    (checkout / "notebook_gold.ipynb").write_text(json.dumps(gold(html, text)))
    [step] = supply_steps(PAGE_TASK, checkout, checkout)
    assert step.source.read_bytes().decode() == page
    assert step.command == START_WEB
    assert str(step.target) == "/var/lib/deskfork/web/www.gutenberg.org/files/16/16-h/16-h.htm"


@pytest.mark.parametrize("notebook", ["{", "[]", "{}", '{"cells": [1]}', json.dumps(gold("x" * 2000, "y" * 2000))])
def test_a_gold_notebook_without_the_page_is_named(checkout: Path, notebook: str) -> None:
    (checkout / "notebook_gold.ipynb").write_text(notebook)
    with pytest.raises(TaskError, match="does not print the page"):
        supply_steps(PAGE_TASK, checkout, checkout)


def test_other_tasks_are_supplied_with_nothing(checkout: Path) -> None:
    assert supply_steps("00b43a0a-b17b-475d-a482-302efe94d4cc", checkout, checkout) == ()
