"""Guards the reading of solutions: cells lost, comments run as steps, broken files that raise something else."""

from pathlib import Path

import pytest

from deskfork.core.errors import TaskError
from deskfork.tasks.solution import read_cells


def test_cells_are_what_stands_between_the_separators(tmp_path: Path) -> None:
    path = tmp_path / "solution.py"
    path.write_text('"""Head."""\n\n# %%\nimport os\n\nprint(1)\n# %% second\n!ls\n# %%\n\n# %%\n# only words\n')
    assert read_cells(path) == ["import os\n\nprint(1)", "!ls"]


def test_a_file_without_separators_is_one_cell(tmp_path: Path) -> None:
    path = tmp_path / "solution.py"
    path.write_text("x = 1\nfinal_answer(x)\n")
    assert read_cells(path) == ["x = 1\nfinal_answer(x)"]


@pytest.mark.parametrize("raw", [b"", b"# %%\n", b'"""Head."""\n', b"\xff\xfe", b"#" * 300_000])
def test_a_file_that_is_no_solution_is_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "solution.py"
    path.write_bytes(raw)
    with pytest.raises(TaskError, match=r"solution\.py"):
        read_cells(path)


def test_a_missing_solution_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"lost\.py"):
        read_cells(tmp_path / "lost.py")
