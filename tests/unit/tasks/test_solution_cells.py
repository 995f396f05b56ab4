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


def test_an_included_files_cells_come_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "acts.py").write_text('"""Head."""\n# %%\nimport os\n# %%\ndef act(): ...\n')
    path = tmp_path / "solution.py"
    path.write_text("# %%\nx = 1\n# %% include shared/acts.py\ny = 2\n# %% included is only a word here\nact()\n")
    assert read_cells(path) == ["x = 1", "import os", "def act(): ...", "y = 2", "act()"]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("lost.py", None, r"lost\.py, which solution\.py includes, cannot be read"),
        ("../outside.py", b"x = 1\n", r"includes \.\./outside\.py, which lies outside"),
        ("/etc/hostname", None, r"includes /etc/hostname, which lies outside"),
        (".", None, r"which solution\.py includes, cannot be read"),
        ("a\0b.py", None, r"solution\.py"),
        ("acts.py", b"\xff", r"acts\.py, which solution\.py includes, is not UTF-8"),
        ("acts.py", b"#" * 300_000, r"acts\.py, which solution\.py includes, is larger"),
        ("acts.py", b"# nothing\n", r"acts\.py has no cells"),
        ("acts.py", b"# %% include solution.py\nx = 1\n", r"acts\.py, which solution\.py includes, includes another"),
    ],
)
def test_a_file_that_cannot_be_included_is_named(
    tmp_path: Path, name: str, content: bytes | None, complaint: str
) -> None:
    path = tmp_path / "folder" / "solution.py"
    path.parent.mkdir()
    path.write_text(f"# %% include {name}\n# %%\nx = 1\n")
    if content is not None:
        (path.parent / name).write_bytes(content)
    with pytest.raises(TaskError, match=complaint):
        read_cells(path)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("x = 1\n")
    path = tmp_path / "folder" / "solution.py"
    path.parent.mkdir()
    path.write_text("# %% include link.py\n")
    (path.parent / "link.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(TaskError, match=r"link\.py, which lies outside"):
        read_cells(path)


def test_includes_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "acts.py").write_text("x = 1\n")
    path = tmp_path / "solution.py"
    path.write_text("# %% include acts.py\n" * 9)
    with pytest.raises(TaskError, match="more than 8 files"):
        read_cells(path)
