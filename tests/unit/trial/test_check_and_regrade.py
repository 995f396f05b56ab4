"""Guards trust: a task that passes what it should not is found out; a verdict can be had again from its evidence."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deskfork.core.errors import ConfigError
from deskfork.records.reader import read_run
from deskfork.sandbox.fake.provider import FakeProvider
from deskfork.trial.check import TaskCheck, check_tasks
from deskfork.trial.evaluate import gather_again
from deskfork.trial.regrade import Regraded, regrade_run

# Whatever the file holds, it passes.
LENIENT_TASK = """
instruction: Write out.csv.
setup:
  - {type: copy, source: in.csv, target: /home/user/Desktop/in.csv}
evaluator:
  checks:
    - metric: check_include_exclude
      result: {type: guest_file, path: /home/user/Desktop/out.csv}
      expected: {type: rule, exclude: [never]}
solution: solution.py
"""


def check(bench: Any) -> list[TaskCheck]:
    return list(check_tasks(bench.config(), notify=bench.notify, on_begin=lambda *_: None).tasks)


def test_a_task_that_can_be_trusted_is_called_so(bench: Any, csv_task: Path) -> None:
    (checked,) = check(bench)
    assert (checked.is_sound, checked.problems) == (True, ())
    names = [state.name for state in checked.states]
    assert names[:2] == ["null", "oracle"]
    assert {"value changed", "row dropped", "emptied", "truncated", "wrong encoding"} <= set(names)


def test_a_solution_that_does_not_solve_is_named(bench: Any, add_task: Callable[..., Path]) -> None:
    add_task("unsolved", "# %%\nfinal_answer('done')\n")
    (checked,) = check(bench)
    assert (checked.solvable, checked.discriminating, checked.stable) == (False, None, None)
    assert "the solution scores 0.0" in checked.problems[0]


def test_an_evaluator_that_lets_damage_pass_is_named(bench: Any, csv_task: Path) -> None:
    (csv_task / "task.yaml").write_text(LENIENT_TASK)
    (checked,) = check(bench)
    assert (checked.solvable, checked.discriminating, checked.stable) == (True, False, True)
    assert any("value changed" in problem for problem in checked.problems)


def test_a_solved_start_is_no_task(bench: Any, csv_task: Path) -> None:
    text = (csv_task / "task.yaml").read_text()
    (csv_task / "task.yaml").write_text(text.replace("/Desktop/in.csv", "/Desktop/out.csv"))
    (csv_task / "solution.py").write_text("# %%\nfinal_answer('nothing to do')\n")
    (checked,) = check(bench)
    assert (checked.solvable, checked.discriminating) == (True, False)
    assert "doing nothing scores 1.0" in checked.problems[0]


def test_a_task_without_a_solution_is_listed_as_not_known(bench: Any, csv_task: Path, script_task: Path) -> None:
    text = (script_task / "task.yaml").read_text()
    (script_task / "task.yaml").write_text(text.replace("solution: solution.py\n", ""))
    checked = {found.task: found for found in check(bench)}
    assert checked["copy-csv"].is_sound
    assert (checked["script"].solvable, "no solution" in checked["script"].problems[0]) == (None, True)


@pytest.fixture
def finished(bench: Any, csv_task: Path) -> Path:
    bench.run(keep_state=True)
    return Path(bench.summary.run_dir)


def only(entries: list[Regraded]) -> Regraded:
    (entry,) = entries
    return entry


def test_regrading_an_unchanged_run_changes_nothing(finished: Path) -> None:
    entry = only(regrade_run(finished))
    assert (entry.has_changed, entry.is_task_changed, entry.after) == (False, False, entry.before)


def test_regrading_by_another_gold_file_tells_what_changed_and_that_the_task_did(
    finished: Path, csv_task: Path
) -> None:
    (csv_task / "gold.csv").write_text("a,b\n1,3\n")
    entry = only(regrade_run(finished))
    assert (entry.has_changed, entry.is_task_changed) == (True, True)
    assert entry.after is not None
    assert (entry.before.score, entry.after.score) == (1.0, 0.0)
    assert read_run(finished).attempts[0].result.score == 1.0  # type: ignore[union-attr]


def test_an_applied_regrading_keeps_the_earlier_result(finished: Path, csv_task: Path) -> None:
    (csv_task / "gold.csv").write_text("a,b\n1,3\n")
    regrade_run(finished, is_applied=True)
    attempt = read_run(finished).attempts[0]
    assert attempt.result is not None
    assert (attempt.result.score, attempt.result.strict_score) == (0.0, 0.0)
    assert '"score": 1.0' in (attempt.paths.root / "result-before-1.json").read_text()


def test_evidence_that_was_tampered_with_is_not_judged(finished: Path) -> None:
    kept = read_run(finished).attempts[0].paths.guest
    (kept / "1-out.csv").write_text("a,b\n1,4\n")
    entry = only(regrade_run(finished))
    assert (entry.after, entry.has_changed) == (None, False)
    assert "changed afterwards" in entry.reason


def test_a_kept_disk_is_read_again_in_a_fresh_machine(bench: Any, finished: Path) -> None:
    kept = read_run(finished).attempts[0].paths
    (kept.guest / "1-out.csv").unlink()
    with closing(FakeProvider(parent=bench.sandboxes)) as provider:
        entry = only(regrade_run(finished, gather=lambda *given: gather_again(*given, provider)))
    assert (entry.after, entry.reason) == (entry.before, "")
    assert (kept.evidence(1) / "1-out.csv").read_text() == "a,b\n1,2\n"


def test_a_disk_that_was_not_kept_is_said_to_be_missing(bench: Any, csv_task: Path) -> None:
    bench.run()
    with closing(FakeProvider(parent=bench.sandboxes)) as provider:
        gather = lambda *given: gather_again(*given, provider)  # noqa: E731
        entry = only(regrade_run(Path(bench.summary.run_dir), gather=gather))
    assert entry.after is None
    assert "final state" in entry.reason


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run directory"):
        regrade_run(tmp_path)
