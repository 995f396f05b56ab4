"""Reading notebooks in two ways: as upstream's library does, and as what a person sees in them."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import nbformat
from nbformat import converter, reader, validator

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.metrics.judged import shown

MAX_NOTEBOOK_BYTES = 32 * 1024 * 1024
UPSTREAM_FAILS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
    nbformat.ValidationError,
)
"""What reading and comparing documents of any shape raises. Upstream takes every exception in a metric for a 0."""
PIP_TEXTS = ("Requirement already satisfied:", "Successfully installed")
"""By which upstream knows what pip prints."""
_FIRST_MINOR_WITH_IDS = 5
_MAX_CHECKED_BYTES = 1024 * 1024
_KEPT_MIME = re.compile(r"text/(?:plain|html)|image/[\w.+-]+")
_INSTALLS = re.compile(r"[!%]\s*(?:\S+\s+-m\s+)?(?:pip3?|conda|mamba)\s|\w+\.download\(")
_IMPORTS = re.compile(r"import \w+\Z")


class Broken(ValueError):
    """The bytes are no notebook; the message says why."""


@dataclass(frozen=True)
class Output:
    """One output of a code cell."""

    kind: str
    """`stream`, `display_data`, `execute_result` or `error`."""
    name: str
    """The stream's name, or the exception's."""
    text: str
    """What was printed."""
    data: Mapping[str, str]
    """What was displayed, by MIME type: plain text, HTML and pictures only."""
    count: int | None


@dataclass(frozen=True)
class Cell:
    """One cell."""

    kind: str
    source: str
    count: int | None
    """The number in the brackets beside a code cell; None if it was not run."""
    outputs: tuple[Output, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """The source without what no reader sees: kinds of line ends, blanks at line ends, blank lines around it."""
        text = self.source.replace("\r\n", "\n").strip("\n")
        return tuple(line.rstrip() for line in text.rstrip().split("\n"))

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing in it, as in the cell that JupyterLab adds after the last one is run."""
        return not self.source.strip() and not self.outputs

    @property
    def is_installation(self) -> bool:
        """Whether all its lines install something, as `!pip install x` or `nltk.download("y")`."""
        lines = [part.strip() for line in self.lines if not line.startswith("#") for part in line.split(";")]
        lines = [line for line in lines if line]
        does = [line for line in lines if not _IMPORTS.match(line)]
        return self.kind == "code" and bool(does) and all(map(_INSTALLS.match, does))


def read_as_upstream(raw: bytes) -> Any:
    """Read a notebook as `nbformat.read(as_version=4)` does: old formats are upgraded, what breaks the schema passes.

    That function logs and warns of guests' notebooks, so its parts are called one by one: the last is
    `check_as_upstream`.

    Returns:
        The library's own object, of which nothing is sure but that it is of format 4.

    Raises:
        Broken: Upstream's library would raise.
    """
    try:
        found = reader.reads(_text(raw, is_bom_allowed=False))  # type: ignore[no-untyped-call]
        return converter.convert(found, 4)  # type: ignore[no-untyped-call]
    except Broken:
        raise
    except nbformat.reader.NotJSONError as error:
        raise Broken("it is not JSON") from error
    except RecursionError as error:
        raise Broken("it is nested too deep") from error
    except UPSTREAM_FAILS as error:
        raise Broken(f"nbformat refuses it: {shown(str(error))}") from error


def check_as_upstream(notebook: Any, raw: bytes) -> None:
    """Raise what nbformat's check of the schema raises beside its own error, which is no more than a line in a log.

    It takes long for large notebooks that break the schema, so it is made last, and not for those: few shapes, which no
    program writes, make it raise.

    Raises:
        Broken: Upstream's library would raise; or any of `UPSTREAM_FAILS`.
    """
    version, minor = reader.get_version(notebook)  # type: ignore[no-untyped-call]
    if not (isinstance(version, int) and isinstance(minor, int)):
        raise Broken("its format's number is no integer")
    if len(raw) > _MAX_CHECKED_BYTES:
        return
    if minor >= _FIRST_MINOR_WITH_IDS:
        _ = {cell["id"] for cell in notebook["cells"] if "id" in cell}
    next(validator.iter_validate(notebook, version=version, version_minor=minor), None)  # type: ignore[no-untyped-call]


def read_cells(raw: bytes) -> list[Cell]:
    """Read a notebook's cells.

    Args:
        raw: A notebook of format 4, in UTF-8, with or without a byte order mark.

    Raises:
        Broken: It is none that Jupyter opens.
    """
    notebook = read_object(raw, is_bom_allowed=True)
    if type(notebook.get("nbformat")) is not int or notebook["nbformat"] != 4:
        raise Broken(f"its nbformat is {shown(str(notebook.get('nbformat')))}, not 4")
    if type(notebook.get("nbformat_minor", 0)) is not int or not isinstance(notebook.get("metadata"), dict):
        raise Broken("it has no metadata, or a minor format number that is none")
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise Broken("it has no list of cells")
    return [_cell(cell, place) for place, cell in enumerate(cells, start=1)]


def read_gold_cells(raw: bytes, *, name: str = "gold") -> list[Cell]:
    """Read a notebook of the task's own.

    Args:
        raw: The notebook.
        name: Which one it is, for the message.

    Raises:
        EvaluationError: It is none.
    """
    try:
        return read_cells(raw)
    except Broken as error:
        raise EvaluationError(f"the {name} notebook cannot be compared with: {error}") from error


def read_object(raw: bytes, *, is_bom_allowed: bool) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        Broken: It is none.
    """
    try:
        document = json.loads(_text(raw, is_bom_allowed=is_bom_allowed))
    except json.JSONDecodeError as error:
        raise Broken(f"it is not JSON (line {error.lineno}: {error.msg})") from error
    except RecursionError as error:
        raise Broken("it is nested too deep") from error
    except Broken:
        raise
    except ValueError as error:
        # Python refuses integers of more than 4300 digits.
        raise Broken("it holds a number that is too long") from error
    if not isinstance(document, dict):
        raise Broken("its top level is no JSON object")
    return document


def _text(raw: bytes, *, is_bom_allowed: bool) -> str:
    if len(raw) > MAX_NOTEBOOK_BYTES:
        raise Broken(f"it is larger than {MAX_NOTEBOOK_BYTES // 1024**2} MiB")
    try:
        return raw.decode("utf-8-sig" if is_bom_allowed else "utf-8")
    except UnicodeDecodeError as error:
        raise Broken(f"it is not UTF-8 text (byte {error.start})") from error


def _cell(cell: object, place: int) -> Cell:
    if not isinstance(cell, dict) or cell.get("cell_type") not in ("code", "markdown", "raw"):
        raise Broken(f"cell {place} has no type")
    source = _joined(cell.get("source"), place)
    if cell["cell_type"] != "code":
        return Cell(cell["cell_type"], source, None, ())
    outputs = cell.get("outputs")
    if not isinstance(outputs, list):
        raise Broken(f"code cell {place} has no list of outputs")
    count = _count(cell.get("execution_count"), place)
    return Cell("code", source, count, tuple(_output(output, place) for output in outputs))


def _output(output: object, place: int) -> Output:
    kind = output.get("output_type") if isinstance(output, dict) else None
    if not isinstance(output, dict) or kind not in ("stream", "display_data", "execute_result", "error"):
        raise Broken(f"code cell {place} has an output of no known type")
    if kind == "stream":
        return Output(kind, str(output.get("name")), _joined(output.get("text"), place), {}, None)
    if kind == "error":
        return Output(kind, str(output.get("ename")), str(output.get("evalue")), {}, None)
    bundle = output.get("data")
    if not isinstance(bundle, dict):
        raise Broken(f"code cell {place} has an output without data")
    data = {mime: _joined(text, place) for mime, text in bundle.items() if _KEPT_MIME.fullmatch(mime)}
    return Output(kind, "", "", data, _count(output.get("execution_count"), place))


def _count(count: object, place: int) -> int | None:
    if count is not None and type(count) is not int:
        raise Broken(f"code cell {place} was run as number {shown(str(count))}")
    return count


def _joined(text: object, place: int) -> str:
    if isinstance(text, str):
        return text
    if isinstance(text, list) and all(isinstance(part, str) for part in text):
        return "".join(text)
    raise Broken(f"cell {place} holds a text that is none")
