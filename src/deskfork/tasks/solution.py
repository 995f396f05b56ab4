"""Solutions: Python files whose cells the oracle runs, one a step, in the guest's kernel."""

import ast
import re
from pathlib import Path

from deskfork.core.errors import TaskError

MAX_SOLUTION_BYTES = 256 * 1024
"""Of a solution, and of each file that it includes."""
MAX_INCLUDES = 8
_SEPARATOR = re.compile(r"^# %%(.*)$", re.MULTILINE)
_INCLUDE = re.compile(r"\s+include\s+(\S.*)")


def read_cells(path: Path) -> list[str]:
    """Return the cells of a solution: the code between lines that start with `# %%`.

    A line `# %% include FILE` stands for the cells of that file, which lies in the solution's folder or below it and
    includes none itself. Blank cells are left out, and so are those that hold nothing but comments or a docstring, as
    the head of the file.

    Raises:
        TaskError: The file, or one that it includes, is missing, too large, no UTF-8, elsewhere, or has no cell.
    """
    cells: list[str] = []
    includes = 0
    for included, cell in _parts(_read(path)):
        if included is not None:
            includes += 1
            if includes > MAX_INCLUDES:
                raise TaskError(f"solution {path} includes more than {MAX_INCLUDES} files: join some")
            cells += _included_cells(path, included)
        cells += _doing_something([cell])
    return _checked(cells, path)


def _included_cells(path: Path, name: str) -> list[str]:
    folder = path.parent.resolve()
    try:
        place = (folder / name).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        # A NUL in the name, or a link that leads to itself.
        raise TaskError(f"solution {path} includes {name!r}, which is no file: {error}") from error
    if not place.is_relative_to(folder):
        raise TaskError(f"solution {path} includes {name}, which lies outside its folder: move it there")
    parts = _parts(_read(place, included_by=path))
    if any(included is not None for included, _ in parts):
        raise TaskError(f"solution {place}, which {path.name} includes, includes another: name both in {path.name}")
    return _checked(_doing_something([cell for _, cell in parts]), place)


def _parts(text: str) -> list[tuple[str | None, str]]:
    """Split a text into cells, each with the name of the file that its separator includes before it."""
    first, *rest = _SEPARATOR.split(text)
    parts: list[tuple[str | None, str]] = [(None, first)]
    for title, cell in zip(rest[::2], rest[1::2], strict=True):
        found = _INCLUDE.fullmatch(title)
        parts.append((found[1].strip() if found else None, cell))
    return parts


def _read(path: Path, included_by: Path | None = None) -> str:
    what = f"solution {path}" + (f", which {included_by.name} includes," if included_by else "")
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_SOLUTION_BYTES + 1)
        text = raw.decode()
    except OSError as error:
        raise TaskError(f"{what} cannot be read ({error.strerror}): restore it") from error
    except UnicodeDecodeError as error:
        raise TaskError(f"{what} is not UTF-8 text (byte {error.start}): save it as UTF-8") from error
    if len(raw) > MAX_SOLUTION_BYTES:
        raise TaskError(f"{what} is larger than {MAX_SOLUTION_BYTES // 1024} KiB: shorten it")
    return text


def _checked(cells: list[str], path: Path) -> list[str]:
    if not cells:
        raise TaskError(f"solution {path} has no cells: write code between lines that start with '# %%'")
    return cells


def _doing_something(cells: list[str]) -> list[str]:
    return [stripped for cell in cells if _does_something(stripped := cell.strip("\n"))]


def _does_something(cell: str) -> bool:
    try:
        statements = ast.parse(cell).body
    except (SyntaxError, ValueError):
        # IPython's own syntax (`!ls`, `%time`) is for the kernel to judge.
        return True
    return any(
        not (
            isinstance(found, ast.Expr) and isinstance(found.value, ast.Constant) and isinstance(found.value.value, str)
        )
        for found in statements
    )
