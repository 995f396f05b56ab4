"""Guards what a notebook is compared with: the file that the set-up put there, wherever it came from, or nothing."""

import zipfile
from pathlib import Path, PurePosixPath

import pytest

from deskfork.evaluation import original
from deskfork.evaluation.original import original_file
from deskfork.tasks.schema import Task

DOWNLOADS = PurePosixPath("/home/user/Downloads")


def make_task(root: Path, source: str, target: PurePosixPath) -> Task:
    check = {
        "metric": "are_jupyter_outputs_cleared",
        "result": {"type": "guest_file", "path": str(DOWNLOADS / "a.ipynb")},
    }
    setup = [{"type": "copy", "source": source, "target": str(target)}]
    return Task.model_validate(
        {"id": "t", "instruction": "do", "setup": setup, "evaluator": {"checks": [check]}, "root": root}
    )


def test_a_file_that_was_copied_to_the_place_is_the_original(tmp_path: Path) -> None:
    (tmp_path / "start.ipynb").write_bytes(b"{}")
    task = make_task(tmp_path, "start.ipynb", DOWNLOADS / "a.ipynb")
    assert original_file(task, DOWNLOADS / "a.ipynb") == b"{}"
    assert original_file(task, DOWNLOADS / "b.ipynb") is None


def test_a_file_in_an_archive_that_was_copied_beside_it_is_the_original(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("a.ipynb", b"{}")
    assert original_file(make_task(tmp_path, "all.zip", DOWNLOADS / "all.zip"), DOWNLOADS / "a.ipynb") == b"{}"
    elsewhere = make_task(tmp_path, "all.zip", PurePosixPath("/home/user/all.zip"))
    assert original_file(elsewhere, DOWNLOADS / "a.ipynb") is None


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"])
def test_a_broken_archive_holds_no_original(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "all.zip").write_bytes(content)
    assert original_file(make_task(tmp_path, "all.zip", DOWNLOADS / "all.zip"), DOWNLOADS / "a.ipynb") is None


def test_an_archive_is_not_unpacked_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(original, "MAX_FILE_BYTES", 10)
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.ipynb", bytes(1_000_000))
    assert original_file(make_task(tmp_path, "all.zip", DOWNLOADS / "all.zip"), DOWNLOADS / "a.ipynb") is None
