"""Guards the list of what upstream's evaluators get wrong: each line of KNOWN_DIFFERENCES.md is a case here."""

import io
import json
import re
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from notebook_parts import code, displayed, failed, markdown, notebook, printed, returned
from PIL import Image, ImageDraw, ImageOps

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

LIST = Path(__file__).parents[3] / "evaluation_examples/spider2v/KNOWN_DIFFERENCES.md"
BOM = b"\xef\xbb\xbf"

GAMES = b"Season,Total # of Games\nWinter,22\nSummer,29\n"
FILMS = b"name,films\nNew,63\nSci-Fi,61\nGames,61\nChildren,60\n"
PRICES = b"product_id,list_price\n319,2799.99\n"
KERNELS = "Available kernels:\n  python3    /opt/share/jupyter/kernels/python3\n"
PROGRAM = b"def double(x):\n    return 2 * x\n\nprint(double(1))\n"

IMPORT, SCORE, SHOW = "import sklearn", "model = fit()\nscore = model.score()", 'print("Accuracy:", score)'
ORIGINAL = notebook(markdown(), code(IMPORT), code("model = TODO"), code(SHOW))
TITLE = markdown()
FIRST, SECOND = code(IMPORT, count=1), code(SCORE, count=2)
THIRD = code(SHOW, printed("Accuracy: 0.6883116883116883\n"), count=3)
RUN = notebook(TITLE, FIRST, SECOND, THIRD)
PIP = "Requirement already satisfied: nltk in /opt/lib (3.8)\n"


def outputs(*cells: Any, gold: bytes = RUN, original: bytes | None = ORIGINAL) -> Comparison:
    return compare_notebook_outputs(notebook(*cells), gold, original=original)


def third(*seen: Any, source: str = SHOW, count: Any = 3) -> Comparison:
    """The run notebook, its last cell another one."""
    return outputs(TITLE, FIRST, SECOND, code(source, *seen, count=count))


def shows(seen: dict[str, Any], gold: dict[str, Any]) -> Comparison:
    return outputs(code("x", seen, count=1), gold=notebook(code("x", gold, count=1)), original=None)


OLD_FORMAT = json.dumps(
    {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": "x"},
        "worksheets": [
            {"metadata": {}, "cells": [{"cell_type": "code", "input": "x", "outputs": [], "prompt_number": 1}]}
        ],
    }
).encode()
ONE_CELL = notebook(code("x"))

SAVED = notebook(markdown("# Import"), code("import numpy"), code("data.shape"))


def saved(*cells: Any, **further: Any) -> Comparison:
    return compare_ipynb_files(notebook(*cells, **further), SAVED)


def reordered_keys(raw: bytes) -> bytes:
    return json.dumps(dict(reversed(json.loads(raw).items()))).encode()


LOADED, SHAPE = code("data = load()", count=1), code("data.shape", returned("(9, 2)", 2), count=2)
UNRUN = notebook(markdown(), code("data = load()"), code("data.shape"))


def executed(*cells: Any) -> Comparison:
    return is_jupyter_cell_executed(notebook(markdown(), *cells), original=UNRUN)


def cleared(*cells: Any) -> Comparison:
    return are_jupyter_outputs_cleared(notebook(markdown(), *cells), original=UNRUN)


def picture(size: tuple[int, int] = (64, 48)) -> Image.Image:
    drawn = Image.new("RGBA", size, "white")
    pen = ImageDraw.Draw(drawn)
    pen.rectangle((size[0] // 8, size[1] // 8, size[0] // 4, size[1] - 1), fill=(49, 115, 161))
    pen.rectangle((size[0] // 2, size[1] // 2, size[0] * 3 // 4, size[1] - 1), fill=(49, 115, 161))
    return drawn


def encoded(drawn: Image.Image, kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    drawn.save(stream, kind)
    return stream.getvalue()


def drawn(change: Callable[[Image.Image], Image.Image]) -> Comparison:
    return compare_jupyterlab_images(encoded(change(picture())), encoded(picture()))


def recoloured(image: Image.Image) -> Image.Image:
    _, green, blue, opacity = image.split()
    return Image.merge("RGBA", (Image.new("L", image.size, 255), green, blue, opacity))


def flat(_: Image.Image) -> Image.Image:
    return Image.frombytes("L", (16, 16), bytes(range(256)))


def transparent(image: Image.Image) -> Image.Image:
    image.putalpha(0)
    return image


def rounded(image: Image.Image) -> Image.Image:
    image.putpixel((0, 0), (254, 254, 254, 255))
    return image


PAGE = "http://localhost:1036/lab/tree/Model.ipynb"
PATTERNS = ("http://localhost:1036", r"Model\.ipynb")
at = partial(is_expected_url_pattern_match, patterns=PATTERNS)
picked = b"Winter,22\n"

# Name: the case, and whether upstream accepts it. The strict verdict is the other one.
CASES: dict[str, tuple[Callable[[], Comparison], bool]] = {
    "csv-stray-bytes": (lambda: compare_csv(GAMES.replace(b"22", b"2\xff2"), GAMES), True),
    "csv-other-line-ends": (lambda: compare_csv(GAMES.replace(b"\n", b"\x0c"), GAMES), True),
    "csv-header-anywhere": (lambda: compare_csv(picked + GAMES.replace(picked, b""), GAMES, ignore_order=True), True),
    "csv-byte-order-mark": (lambda: compare_csv(BOM + GAMES, GAMES), False),
    "csv-quoted-cells": (lambda: compare_csv(GAMES.replace(b"Winter", b'"Winter"'), GAMES), False),
    "csv-blank-end": (lambda: compare_csv(GAMES + b"\n", GAMES), False),
    "csv-float-noise": (lambda: compare_csv(PRICES.replace(b".99", b".9900000000002"), PRICES), False),
    "csv-tied-rows": (
        lambda: compare_csv(FILMS.replace(b"Sci-Fi,61\nGames,61", b"Games,61\nSci-Fi,61"), FILMS),
        False,
    ),
    "include-part-of-word": (
        lambda: check_include_exclude(
            KERNELS.replace("python3", "python3.11"), include=["python3"], exclude=["jupyterlab"]
        ),
        True,
    ),
    "include-nothing-printed": (lambda: check_include_exclude("\n", include=[], exclude=["jupyterlab"]), True),
    "text-in-one-line": (
        lambda: compare_text_file(PROGRAM.replace(b"\n", b" "), PROGRAM, ignore_blanks=True),
        True,
    ),
    "text-indentation-lost": (
        lambda: compare_text_file(PROGRAM.replace(b"\n    ", b"\n"), PROGRAM, ignore_blanks=True),
        True,
    ),
    "text-byte-order-mark": (lambda: compare_text_file(BOM + PROGRAM, PROGRAM, ignore_blanks=True), False),
    "text-last-line-end": (lambda: compare_text_file(PROGRAM.rstrip(), PROGRAM), False),
    "outputs-never-run": (
        lambda: outputs(TITLE, code(IMPORT), code(SCORE), code(SHOW, *THIRD["outputs"])),
        True,
    ),
    "outputs-one-number": (lambda: third(*THIRD["outputs"], count=1), True),
    "outputs-other-number": (
        lambda: shows(returned("20", 7), returned("20", 1)),
        True,
    ),
    "outputs-error": (lambda: third(*THIRD["outputs"], failed()), True),
    "outputs-printed-instead": (
        lambda: third(*THIRD["outputs"], source='print("Accuracy: 0.6883116883116883")'),
        True,
    ),
    "outputs-cells-moved": (
        lambda: outputs(TITLE, code(SCORE, count=1), code(IMPORT, count=2), THIRD),
        True,
    ),
    "outputs-text-cell": (lambda: outputs(markdown("# Other"), FIRST, SECOND, THIRD), True),
    "outputs-html": (lambda: shows(displayed("a 1", text_html="<b>a</b> 2"), displayed("a 1", text_html="a 1")), True),
    "outputs-only-html": (lambda: third(*THIRD["outputs"], {**displayed("x"), "data": {"text/html": "0.99"}}), True),
    "outputs-picture": (
        lambda: shows(figure(Image.new("RGB", (64, 48), "white")), figure(picture())),
        True,
    ),
    "outputs-hidden-by-pip": (
        lambda: third(*THIRD["outputs"], printed("Accuracy: 0.99\nSuccessfully installed\n")),
        True,
    ),
    "outputs-old-format": (
        lambda: compare_notebook_outputs(OLD_FORMAT, notebook(code("x", count=1))),
        True,
    ),
    "outputs-blank-cell": (lambda: outputs(TITLE, FIRST, SECOND, THIRD, code("")), False),
    "outputs-installation-cell": (
        lambda: outputs(TITLE, code("!pip install nltk", printed(PIP), count=4), FIRST, SECOND, THIRD),
        False,
    ),
    "outputs-beside-pip": (
        lambda: third(printed(PIP + "Accuracy: 0.6883116883116883\n"), source="!pip install nltk\n" + SHOW),
        False,
    ),
    "outputs-pip-in-gold": (lambda: shows(printed(PIP), printed(PIP)), False),
    "outputs-split-print": (lambda: third(printed("Accuracy: "), printed("0.6883116883116883\n")), False),
    "outputs-widths": (lambda: third(printed("Accuracy:  0.6883116883116883 ")), False),
    "outputs-noise": (lambda: third(printed("Accuracy: 0.6883116883116884\n")), False),
    "outputs-noise-around-zero": (
        lambda: shows(returned("mean  2.074711e-16", 1), returned("mean -1.7e-17", 1)),
        False,
    ),
    "outputs-address": (
        lambda: shows(returned("<Cursor at 0x7f01>", 1), returned("<Cursor at 0x1271f26c0>", 1)),
        False,
    ),
    "outputs-more-in-own-cell": (
        lambda: outputs(TITLE, FIRST, code(SCORE, printed("fitted\n"), count=2), THIRD),
        False,
    ),
    "outputs-byte-order-mark": (lambda: compare_notebook_outputs(BOM + RUN, RUN, original=ORIGINAL), False),
    "cells-old-format": (lambda: compare_notebook_cells(OLD_FORMAT, ONE_CELL), True),
    "cells-blank-cell": (lambda: compare_notebook_cells(notebook(code("x"), code("")), ONE_CELL), False),
    "cells-blanks-at-ends": (lambda: compare_notebook_cells(notebook(code("x \n")), ONE_CELL), False),
    "cells-byte-order-mark": (lambda: compare_notebook_cells(BOM + ONE_CELL, ONE_CELL), False),
    "document-empty-object": (lambda: compare_ipynb_files(b"{}", SAVED), True),
    "document-first-keys": (
        lambda: compare_ipynb_files(json.dumps({"cells": json.loads(SAVED)["cells"]}).encode(), SAVED),
        True,
    ),
    "document-no-metadata": (lambda: saved(*json.loads(SAVED)["cells"], metadata=None), True),
    "document-key-order": (lambda: compare_ipynb_files(reordered_keys(SAVED), SAVED), False),
    "document-ids": (
        lambda: saved(*(cell | {"id": f"c{i}"} for i, cell in enumerate(json.loads(SAVED)["cells"])), nbformat_minor=5),
        False,
    ),
    "document-cell-metadata": (
        lambda: saved(*(cell | {"metadata": {"trusted": True}} for cell in json.loads(SAVED)["cells"])),
        False,
    ),
    "document-source-lines": (
        lambda: saved(*(cell | {"source": [cell["source"]]} for cell in json.loads(SAVED)["cells"])),
        False,
    ),
    "document-blank-end": (lambda: saved(*json.loads(SAVED)["cells"], code("")), False),
    "document-count": (lambda: saved(markdown("# Import"), code("import numpy", count=1), code("data.shape")), False),
    "document-byte-order-mark": (lambda: compare_ipynb_files(BOM + SAVED, SAVED), False),
    "executed-no-code": (lambda: executed(), True),
    "executed-cell-dropped": (lambda: executed(LOADED), True),
    "executed-other-source": (lambda: executed(LOADED, code("pass", count=2)), True),
    "executed-no-number": (lambda: executed(LOADED, SHAPE | {"execution_count": "x"}), True),
    "executed-one-number": (lambda: executed(LOADED | {"execution_count": 2}, SHAPE), True),
    "executed-nothing-shown": (lambda: executed(LOADED, SHAPE | {"outputs": []}), True),
    "executed-error": (lambda: executed(LOADED, code("data.shape", failed(), count=2)), True),
    "executed-blank-cell": (lambda: executed(LOADED, SHAPE, code("")), False),
    "cleared-outputs-left": (lambda: cleared(code("data = load()"), SHAPE | {"execution_count": None}), True),
    "cleared-no-code": (lambda: cleared(), True),
    "cleared-cell-dropped": (lambda: cleared(code("data = load()")), True),
    "cleared-other-source": (lambda: cleared(code("data = load()"), code("data")), True),
    "cleared-numbers-left": (lambda: cleared(LOADED, code("data.shape", count=2)), False),
    "picture-mirrored": (lambda: drawn(ImageOps.mirror), True),
    "picture-recoloured": (lambda: drawn(recoloured), True),
    "picture-transparent": (lambda: drawn(transparent), True),
    "picture-flat": (lambda: drawn(flat), True),
    "picture-two-pixels": (
        lambda: compare_jupyterlab_images(encoded(halves((2, 2))), encoded(halves((64, 48)))),
        True,
    ),
    "picture-scaled": (lambda: drawn(lambda image: image.resize((128, 96), Image.Resampling.NEAREST)), True),
    "picture-other-format": (
        lambda: compare_jupyterlab_images(encoded(picture().convert("RGB"), "BMP"), encoded(picture())),
        True,
    ),
    "picture-rounding": (lambda: drawn(rounded), False),
    "url-longer-port": (lambda: at(PAGE.replace("1036", "10360")), True),
    "url-in-query": (lambda: at("http://localhost:1036/login?next=%2Flab%2Ftree%2FModel.ipynb"), True),
    "url-other-file": (lambda: at(PAGE.replace("Model", "Old_Model")), True),
    "url-other-host": (lambda: at(PAGE.replace("1036/", "1036@example.org/")), True),
    "url-other-name-of-host": (lambda: at(PAGE.replace("localhost", "127.0.0.1")), False),
}


def halves(size: tuple[int, int]) -> Image.Image:
    split = Image.new("RGB", size, "white")
    split.paste((49, 115, 161), (0, 0, size[0] // 2, size[1]))
    return split


def figure(shown: Image.Image) -> dict[str, Any]:
    return displayed("<Figure>", image_png=b64encode(encoded(shown)).decode())


@pytest.mark.parametrize("name", CASES)
def test_the_verdicts_differ(name: str) -> None:
    make, is_accepted_upstream = CASES[name]
    compared = make()
    assert (compared.upstream, compared.strict) == ((1.0, 0.0) if is_accepted_upstream else (0.0, 1.0))
    refused = compared.strict if is_accepted_upstream else compared.upstream
    assert refused.detail


def test_every_case_is_in_the_list_and_only_those() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| .* \| (1|0) \| (1|0) \|", LIST.read_text(encoding="utf-8"), re.MULTILINE)
    expected = [(name, "1", "0") if accepts else (name, "0", "1") for name, (_, accepts) in CASES.items()]
    assert sorted(rows) == sorted(expected)


@pytest.mark.parametrize(
    "agreed",
    [
        lambda: compare_csv(GAMES, GAMES),
        lambda: check_include_exclude(KERNELS, include=["python3"], exclude=["jupyterlab"]),
        lambda: compare_text_file(PROGRAM, PROGRAM, ignore_blanks=True),
        lambda: outputs(TITLE, FIRST, SECOND, THIRD),
        lambda: compare_notebook_cells(ONE_CELL, ONE_CELL),
        lambda: saved(*json.loads(SAVED)["cells"]),
        lambda: executed(LOADED, SHAPE),
        lambda: cleared(code("data = load()"), code("data.shape")),
        lambda: drawn(lambda image: image),
        lambda: at(PAGE),
    ],
)
def test_what_the_cases_are_made_from_passes_in_both(agreed: Callable[[], Comparison]) -> None:
    compared = agreed()
    assert (compared.upstream, compared.strict) == (1.0, 1.0)
