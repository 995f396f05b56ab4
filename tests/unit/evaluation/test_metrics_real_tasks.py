"""Guards the metrics on real data: every gold file of Spider2-V passes, no untouched file and no damaged one does."""

import os
from pathlib import Path

import pytest

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
from deskfork.evaluation.metrics.text import compare_text_file
from deskfork.evaluation.mutations import mutate
from deskfork.evaluation.original import original_file
from deskfork.tasks.checks import (
    AreJupyterOutputsCleared,
    Check,
    CompareCsv,
    CompareIpynbFiles,
    CompareJupyterlabImages,
    CompareNotebookCells,
    CompareNotebookOutputs,
    CompareTextFile,
    GuestFile,
    HostFile,
    IsJupyterCellExecuted,
)
from deskfork.tasks.load import open_source
from deskfork.tasks.schema import Task

CHECKOUT = Path(os.environ.get("SPIDER2V", Path(__file__).parents[3] / "../shared/spider2-v"))
pytestmark = pytest.mark.skipif(
    not CHECKOUT.is_dir(), reason=f"no Spider2-V checkout at {CHECKOUT}; name one with SPIDER2V"
)
FILE_CHECKS = (
    AreJupyterOutputsCleared
    | CompareCsv
    | CompareIpynbFiles
    | CompareJupyterlabImages
    | CompareNotebookCells
    | CompareNotebookOutputs
    | CompareTextFile
    | IsJupyterCellExecuted
)


def file_checks() -> list[tuple[Task, Check]]:
    source = open_source(CHECKOUT)
    tasks = [source.load(summary.id) for summary in source.list() if "jupyter" in summary.related_apps]
    return [(task, check) for task in tasks for check in task.evaluator.checks if isinstance(check, FILE_CHECKS)]


def judge(task: Task, check: Check, result: bytes) -> Comparison:
    assert isinstance(check.result, GuestFile)
    original = original_file(task, check.result.path)
    match check:
        case IsJupyterCellExecuted():
            return is_jupyter_cell_executed(result, original=original)
        case AreJupyterOutputsCleared():
            return are_jupyter_outputs_cleared(result, original=original)
        case CompareNotebookOutputs():
            return compare_notebook_outputs(result, gold(task, check), original=original)
        case CompareTextFile(options=options):
            return compare_text_file(result, gold(task, check), ignore_blanks=options.ignore_blanks)
    compare = {
        "compare_csv": compare_csv,
        "compare_ipynb_files": compare_ipynb_files,
        "compare_jupyterlab_images": compare_jupyterlab_images,
        "compare_notebook_cells": compare_notebook_cells,
    }[check.metric]
    return compare(result, gold(task, check))


def gold(task: Task, check: Check) -> bytes:
    assert isinstance(check.expected, HostFile)
    return task.host_path(check.expected.path).read_bytes()


def test_gold_files_pass_both_verdicts() -> None:
    compared = [(task, check) for task, check in file_checks() if isinstance(check.expected, HostFile)]
    assert len(compared) == 38
    for task, check in compared:
        verdicts = judge(task, check, gold(task, check))
        assert (verdicts.upstream, verdicts.strict) == (1.0, 1.0), (task.id, verdicts.strict.detail)


def test_untouched_files_pass_neither_verdict() -> None:
    touched = 0
    for task, check in file_checks():
        assert isinstance(check.result, GuestFile)
        # What the task wants saved elsewhere is not there before.
        untouched = original_file(task, check.result.path)
        if untouched is None or isinstance(check, CompareIpynbFiles):
            continue
        verdicts = judge(task, check, untouched)
        assert (verdicts.upstream, verdicts.strict) == (0.0, 0.0), task.id
        assert verdicts.upstream.detail
        assert verdicts.strict.detail
        touched += 1
    assert touched == 34


def test_damaged_gold_files_do_not_pass_the_strict_verdict() -> None:
    damaged = 0
    for task, check in file_checks():
        if not isinstance(check.expected, HostFile):
            continue
        for name, content in mutate(check, gold(task, check)):
            assert judge(task, check, content).strict == 0.0, (task.id, name)
            damaged += 1
    assert damaged >= 200
