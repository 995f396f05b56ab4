"""Guards the bar that strict verdicts have to pass: nearly right end states of every real task are made and refused."""

import json
import os
from pathlib import Path

import pytest

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.evidence import Evidence, EvidenceIndex, KeptFile, keep
from deskfork.evaluation.judge import judge
from deskfork.evaluation.mutations import mutate
from deskfork.evaluation.original import original_file
from deskfork.tasks.checks import Check, GuestFile, HostFile
from deskfork.tasks.load import open_source
from deskfork.tasks.schema import Task

SPIDER2V = Path(os.environ.get("SPIDER2V") or Path(__file__).parents[4] / "shared" / "spider2-v")
needs_checkout = pytest.mark.skipif(not SPIDER2V.is_dir(), reason="no Spider2-V checkout: give one by SPIDER2V=PATH")
MUTATIONS = {
    # The one real notebook whose cells are compared has one cell.
    "compare_notebook_cells": {
        *("value changed", "cell dropped"),
        *("empty object", "emptied", "truncated", "wrong encoding"),
    },
    "compare_csv": {"value changed", "row dropped", "rows reordered", "emptied", "truncated", "wrong encoding"},
    "compare_text_file": {"value changed", "row dropped", "rows reordered", "emptied", "truncated", "wrong encoding"},
    "compare_jupyterlab_images": {"mirrored", "blank", "emptied", "truncated"},
}
NOTEBOOK = {
    *("value changed", "cell dropped", "cells reordered"),
    *("empty object", "emptied", "truncated", "wrong encoding"),
}


def right_answer(task: Task, check: Check) -> bytes | None:
    """Return a file that does what the task asks for, as far as the checkout itself holds one."""
    if isinstance(check.expected, HostFile):
        return (task.root / check.expected.path).read_bytes()
    if not isinstance(check.result, GuestFile):
        return None
    notebook = json.loads(original_file(task, check.result.path) or b"{}")
    for count, cell in enumerate((c for c in notebook["cells"] if c["cell_type"] == "code"), start=1):
        was_run = check.metric == "is_jupyter_cell_executed" and "".join(cell["source"]).strip()
        printed = {"name": "stdout", "output_type": "stream", "text": ["1\n"]}
        cell.update(outputs=[printed] if was_run else [], execution_count=count if was_run else None)
    return json.dumps(notebook).encode()


def verdict_on(task: Task, content: bytes, directory: Path) -> tuple[float | None, float | None, str]:
    directory.mkdir()
    (directory / "answer").write_bytes(content)
    kept = keep(directory / "answer")
    count = len(task.evaluator.checks)
    found = tuple(Evidence(check=n + 1, source="x", state="read", file=kept) for n in range(count))
    verdict = judge(task, EvidenceIndex(task=task.id, evidence=found), directory)
    return verdict.score, verdict.strict_score, verdict.reason or verdict.metrics[0].strict_detail


@needs_checkout
def test_strict_refuses_every_mutation_of_a_right_answer_to_every_real_task(tmp_path: Path) -> None:
    source = open_source(SPIDER2V)
    passed, judged = [], 0
    for number, task_id in enumerate(source.ids()):
        task = source.load(task_id)
        check = task.evaluator.checks[0]
        answer = right_answer(task, check)
        if answer is None:
            continue
        assert verdict_on(task, answer, tmp_path / f"{number}")[1] == 1.0, task_id
        for name, changed in mutate(check, answer):
            judged += 1
            score, strict, why = verdict_on(task, changed, tmp_path / f"{number}-{name}")
            if strict != 0.0:
                passed.append((task_id[:8], check.metric, name, score, strict, why))
    assert passed == []
    assert judged > 40 * 4


@needs_checkout
def test_each_kind_of_damage_is_done_to_some_real_task() -> None:
    done: dict[str, set[str]] = {}
    source = open_source(SPIDER2V)
    for task_id in source.ids():
        task = source.load(task_id)
        check = task.evaluator.checks[0]
        if (answer := right_answer(task, check)) is not None:
            done.setdefault(check.metric, set()).update(name for name, _ in mutate(check, answer))
    for metric, names in done.items():
        assert names == MUTATIONS.get(metric, NOTEBOOK), metric


def test_what_is_no_notebook_cannot_be_mutated_as_one() -> None:
    check = Task.model_validate(
        {
            "id": "t",
            "instruction": "do",
            "root": "/",
            "evaluator": {
                "checks": [
                    {
                        "metric": "is_jupyter_cell_executed",
                        "result": {"type": "guest_file", "path": "/home/user/a.ipynb"},
                    }
                ]
            },
        }
    ).evaluator.checks[0]
    with pytest.raises(EvaluationError, match="cannot be mutated"):
        list(mutate(check, b"no notebook"))


def test_evidence_that_was_changed_afterwards_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "answer").write_bytes(b"1")
    entry = Evidence(check=1, source="x", state="read", file=keep(tmp_path / "answer"))
    assert entry.content(tmp_path) == b"1"
    (tmp_path / "answer").write_bytes(b"2")
    with pytest.raises(EvaluationError, match="changed"):
        entry.content(tmp_path)


@pytest.mark.parametrize("name", ["../answer", "a/b", "", "/etc/passwd"])
def test_evidence_never_names_a_file_elsewhere(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        KeptFile(name=name, size_bytes=0, sha256="")
