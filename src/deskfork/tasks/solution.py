"""Solutions: Python files whose cells the oracle runs, one a step, in the guest's kernel."""

import ast
import re
from pathlib import Path

from deskfork.core.errors import TaskError

MAX_SOLUTION_BYTES = 256 * 1024
_SEPARATOR = re.compile(r"^# %%.*$", re.MULTILINE)


def read_cells(path: Path) -> list[str]:
    """Return the cells of a solution: the code between lines that start with `# %%`.

    Blank cells are left out, and so are those that hold nothing but comments or a docstring, as the head of the file.

    Raises:
        TaskError: The file is missing, too large, no UTF-8, or has no cell.
    """
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_SOLUTION_BYTES + 1)
        text = raw.decode()
    except OSError as error:
        raise TaskError(f"solution {path} cannot be read ({error.strerror}): restore it") from error
    except UnicodeDecodeError as error:
        raise TaskError(f"solution {path} is not UTF-8 text (byte {error.start}): save it as UTF-8") from error
    if len(raw) > MAX_SOLUTION_BYTES:
        raise TaskError(f"solution {path} is larger than {MAX_SOLUTION_BYTES // 1024} KiB: shorten it")
    cells = [cell.strip("\n") for cell in _SEPARATOR.split(text)]
    if not (cells := [cell for cell in cells if _does_something(cell)]):
        raise TaskError(f"solution {path} has no cells: write code between lines that start with '# %%'")
    return cells


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
