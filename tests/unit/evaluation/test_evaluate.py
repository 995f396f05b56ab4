"""Guards the verdict: a score where none could be judged, a zero where we failed, evidence that is not kept."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from deskfork.core.errors import EvaluationError, InfraError
from deskfork.evaluation.collect import Collection, needs_disk
from deskfork.evaluation.evidence import read_evidence
from deskfork.evaluation.judge import combine, judge
from deskfork.records.trial import Verdict
from deskfork.sandbox.base import Sandbox
from deskfork.sandbox.fake.provider import FakeProvider
from deskfork.tasks.schema import Task

GOLD = "a,b\n1,2\n"
RESULT = PurePosixPath("/home/user/Desktop/result.csv")


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[Sandbox]:
    parent = tmp_path / "sandboxes"
    parent.mkdir()
    with FakeProvider(parent=parent).fork("desktop") as sandbox:
        yield sandbox


def csv_check(gold: str = "gold.csv", path: str = str(RESULT)) -> dict[str, object]:
    return {
        "metric": "compare_csv",
        "result": {"type": "guest_file", "path": path},
        "expected": {"type": "host_file", "path": gold},
    }


def script_check(include: str) -> dict[str, object]:
    return {
        "metric": "check_include_exclude",
        "result": {"type": "script_output", "source": "judge.sh", "target": "/home/user/judge.sh"},
        "expected": {"type": "rule", "include": [include]},
    }


def evaluate(task: Task, guest: Sandbox, directory: Path) -> Verdict:
    collection = Collection(task, directory)
    collection.ask_live(guest)
    collection.read_disk(guest)
    return judge(task, collection.finish(), directory)


def make_task(root: Path, *checks: dict[str, object], **further: object) -> Task:
    (root / "gold.csv").write_text(GOLD)
    (root / "judge.sh").write_text("echo all quiet; echo noise >&2; exit 3\n")
    evaluator = {"checks": list(checks), **further}
    return Task.model_validate({"id": "t", "instruction": "do", "evaluator": evaluator, "root": root})


def test_a_right_answer_scores_one_and_is_kept(guest: Sandbox, tmp_path: Path) -> None:
    guest.put(GOLD.encode(), RESULT)
    verdict = evaluate(make_task(tmp_path, csv_check()), guest, tmp_path / "guest")
    assert (verdict.score, verdict.reason) == (1.0, "")
    assert (tmp_path / "guest" / "1-result.csv").read_text() == GOLD


def test_a_wrong_answer_scores_zero_and_says_what_differs(guest: Sandbox, tmp_path: Path) -> None:
    guest.put(b"a,b\n1,3\n", RESULT)
    verdict = evaluate(make_task(tmp_path, csv_check()), guest, tmp_path / "guest")
    assert (verdict.score, verdict.reason) == (0.0, "")
    assert "line 2" in verdict.metrics[0].detail


def test_a_missing_answer_scores_zero_with_the_reason(guest: Sandbox, tmp_path: Path) -> None:
    verdict = evaluate(make_task(tmp_path, csv_check()), guest, tmp_path / "guest")
    assert verdict.score == 0.0
    assert "no such file in the guest" in verdict.reason


def test_a_folder_in_place_of_the_answer_scores_zero(guest: Sandbox, tmp_path: Path) -> None:
    guest.put(b"x", RESULT / "inner")
    verdict = evaluate(make_task(tmp_path, csv_check()), guest, tmp_path / "guest")
    assert verdict.score == 0.0


def test_a_missing_gold_file_gives_no_score(guest: Sandbox, tmp_path: Path) -> None:
    task = make_task(tmp_path, csv_check())
    guest.put(GOLD.encode(), RESULT)
    (tmp_path / "gold.csv").unlink()
    verdict = evaluate(task, guest, tmp_path / "guest")
    assert verdict.score is None
    assert "gold.csv" in verdict.reason


def test_a_machine_that_is_gone_gives_no_verdict(guest: Sandbox, tmp_path: Path) -> None:
    guest.close()
    with pytest.raises(InfraError):
        evaluate(make_task(tmp_path, csv_check()), guest, tmp_path / "guest")


def test_a_scripts_stdout_counts_whatever_its_exit_code(guest: Sandbox, tmp_path: Path) -> None:
    task = make_task(tmp_path, script_check("all quiet"), script_check("noise"), conjunction="or")
    verdict = evaluate(task, guest, tmp_path / "guest")
    assert [outcome.score for outcome in verdict.metrics] == [1.0, 0.0]
    assert verdict.score == 1.0
    assert (tmp_path / "guest" / "1-judge.sh.stdout").read_text() == "all quiet\n"
    assert (tmp_path / "guest" / "1-judge.sh.stdout.stderr").read_text() == "noise\n"


def test_a_check_that_cannot_be_judged_does_not_undo_a_decided_one(guest: Sandbox, tmp_path: Path) -> None:
    task = make_task(tmp_path, csv_check(), csv_check("lost.csv"))
    verdict = evaluate(task, guest, tmp_path / "guest")
    assert verdict.score == 0.0
    guest.put(GOLD.encode(), RESULT)
    verdict = evaluate(task, guest, tmp_path / "again")
    assert verdict.score is None
    assert "lost.csv" in verdict.reason


def test_the_evidence_alone_gives_the_same_verdict_again(guest: Sandbox, tmp_path: Path) -> None:
    task = make_task(tmp_path, csv_check(), script_check("all quiet"))
    guest.put(b"a,b\n1,3\n", RESULT)
    verdict = evaluate(task, guest, tmp_path / "guest")
    guest.close()
    assert judge(task, read_evidence(tmp_path / "guest"), tmp_path / "guest") == verdict


def test_evidence_of_another_task_is_not_judged(guest: Sandbox, tmp_path: Path) -> None:
    task = make_task(tmp_path, csv_check())
    guest.put(GOLD.encode(), RESULT)
    evaluate(task, guest, tmp_path / "guest")
    changed = make_task(tmp_path, csv_check(), csv_check())
    with pytest.raises(EvaluationError, match="must be run again"):
        judge(changed, read_evidence(tmp_path / "guest"), tmp_path / "guest")


def test_an_answer_with_a_byte_order_mark_passes_in_the_strict_verdict_only(guest: Sandbox, tmp_path: Path) -> None:
    guest.put(b"\xef\xbb\xbfa,b\n1,2\n", RESULT)
    (tmp_path / "gold.csv").write_text(GOLD)
    verdict = evaluate(make_task(tmp_path, csv_check()), guest, tmp_path / "guest")
    assert (verdict.score, verdict.strict_score) == (0.0, 1.0)
    assert "upstream (0.0)" in verdict.difference


def browser_check() -> dict[str, object]:
    return {
        "metric": "is_expected_url_pattern_match",
        "result": {"type": "active_tab"},
        "expected": {"type": "url_patterns", "patterns": ["http://localhost:1036"]},
    }


def test_a_browser_that_is_not_open_scores_zero(guest: Sandbox, tmp_path: Path) -> None:
    task = make_task(tmp_path, browser_check())
    assert not needs_disk(task)
    verdict = evaluate(task, guest, tmp_path / "guest")
    assert (verdict.score, verdict.strict_score) == (0.0, 0.0)
    assert "no browser" in verdict.reason


def test_a_disk_that_cannot_be_mounted_scores_zero(tmp_path: Path) -> None:
    task = make_task(tmp_path, csv_check())
    collection = Collection(task, tmp_path / "guest")
    collection.lose_disk("no file system")
    verdict = judge(task, collection.finish(), tmp_path / "guest")
    assert (verdict.score, verdict.reason) == (0.0, "no file system")


@pytest.mark.parametrize(
    ("scores", "conjunction", "score"),
    [
        ([1.0], "and", 1.0),
        ([1.0, 0.5], "and", 0.75),
        ([1.0, 0.0], "and", 0.0),
        ([None, 0.0], "and", 0.0),
        ([None, 1.0], "and", None),
        ([None], "and", None),
        ([0.0, 0.5], "or", 0.5),
        ([None, 1.0], "or", 1.0),
        ([None, 0.5], "or", None),
        ([None, 0.0], "or", None),
    ],
)
def test_only_a_missing_score_that_matters_takes_the_score_away(
    scores: list[float | None], conjunction: str, score: float | None
) -> None:
    assert combine(scores, "and" if conjunction == "and" else "or") == score


def test_importing_the_command_starts_no_heavy_library() -> None:
    code = "import sys, deskfork.cli.main; print([m for m in ('pandas', 'nbformat') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.strip() == "[]"
