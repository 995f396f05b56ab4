"""Guards the metrics on real data: every gold file of Spider2-V matches itself, and no untouched file matches it."""

import os
from pathlib import Path

import pytest

from deskfork.evaluation.metrics.notebooks import compare_notebook_outputs
from deskfork.evaluation.metrics.tables import compare_csv
from deskfork.tasks.load import open_source
from deskfork.tasks.schema import CompareCsv, CompareNotebookOutputs, CopyStep, Task

CHECKOUT = Path(os.environ.get("SPIDER2V", Path(__file__).parents[3] / "../shared/spider2-v"))
pytestmark = pytest.mark.skipif(
    not CHECKOUT.is_dir(), reason=f"no Spider2-V checkout at {CHECKOUT}; name one with SPIDER2V"
)


def runnable_tasks() -> list[Task]:
    source = open_source(CHECKOUT)
    return [source.load(summary.id) for summary in source.list() if summary.runnable]


def test_gold_files_match_themselves_and_untouched_files_do_not() -> None:
    compared = 0
    for task in runnable_tasks():
        copied = {step.target: task.host_path(step.source) for step in task.setup if isinstance(step, CopyStep)}
        for check in task.evaluator.checks:
            if not isinstance(check, CompareCsv | CompareNotebookOutputs):
                continue
            compare = compare_csv if isinstance(check, CompareCsv) else compare_notebook_outputs
            gold = task.host_path(check.expected.path).read_bytes()
            assert compare(gold, gold) == 1.0, task.id
            if untouched := copied.get(check.result.path):
                judged = compare(untouched.read_bytes(), gold)
                assert judged == 0.0, task.id
                assert judged.detail
                compared += 1
    assert compared >= 20
