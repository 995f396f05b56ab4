"""Guards the live table: every trial is in one state, and what is not known (cost, rate) is not made up."""

import io
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from deskfork.agent.config import NullConfig
from deskfork.cli.run_board import RunBoard, span
from deskfork.cli.run_progress import RunProgress
from deskfork.records.trial import TrialResult, TrialStatus, Verdict
from deskfork.tasks.load import open_source
from deskfork.trial.capacity import Capacity, Slots
from deskfork.trial.plan import TrialEvent, TrialPlan
from deskfork.trial.prepare import Preparation
from deskfork.trial.run import Beginning

TASK = """
instruction: Do it.
evaluator:
  checks:
    - metric: check_include_exclude
      result: {type: guest_file, path: /home/user/answer.txt}
      expected: {type: rule, include: [x]}
"""


def plans(folder: Path, count: int) -> list[TrialPlan]:
    (folder / "tasks/t").mkdir(parents=True)
    (folder / "tasks/t/task.yaml").write_text(TASK)
    task = open_source(folder / "tasks").load("t")
    return [TrialPlan(task, NullConfig(), repeat) for repeat in range(count)]


def ended(plan: TrialPlan, status: TrialStatus = TrialStatus.COMPLETED, cost_usd: float | None = 0.25) -> TrialResult:
    return TrialResult(
        task=plan.task.id,
        agent=plan.agent.name,
        repeat=plan.repeat,
        attempt=0,
        status=status,
        score=None,
        verdict=Verdict(reason="not judged"),
        cost_usd=cost_usd,
        duration_s=1.0,
        phases_s={},
        action_mix={},
        started_at=datetime.now(UTC),
        provider="fake",
        template_digest="",
    )


def text(board: RunBoard) -> str:
    console = Console(file=io.StringIO(), width=150)
    console.print(board.render())
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_what_each_trial_does_is_shown_while_it_is_at_work(tmp_path: Path) -> None:
    first, second, third, _fourth = plans(tmp_path, 4)
    board = RunBoard(4)
    board.note(TrialEvent(first, 0, "fork"))
    board.note(TrialEvent(second, 0, "agent", 7))
    board.note(TrialEvent(third, 0, "ended", 0, ended(third), is_last=True))
    lines = [line.split() for line in text(board).splitlines()]
    assert lines[1][:3] == ["t", "null", "fork"]
    assert lines[2][:5] == ["t", "(2)", "null", "agent", "7"]
    assert "1/4 trials" in text(board)
    assert "2 running, 1 waiting, 1 completed" in board.summary()
    assert "a minute" in board.summary()
    assert "left" in board.summary()
    assert board.summary().endswith("$0.25")


def test_a_failed_attempt_that_is_tried_again_is_paid_for_and_not_over(tmp_path: Path) -> None:
    (plan,) = plans(tmp_path, 1)
    board = RunBoard(1)
    board.note(TrialEvent(plan, 0, "agent", 2))
    board.note(TrialEvent(plan, 0, "ended", 2, ended(plan, TrialStatus.SANDBOX_LOST), is_last=False))
    assert board.ended == 0
    assert "1 running" in board.summary()
    board.note(TrialEvent(plan, 1, "ended", 2, ended(plan, cost_usd=None), is_last=True))
    assert board.ended == 1
    assert board.summary().endswith("$0.25 and 1 of unknown cost")
    assert "left" not in board.summary()


def test_trials_before_a_resume_count_but_not_for_the_rate(tmp_path: Path) -> None:
    first, _second, _third = plans(tmp_path, 3)
    board = RunBoard(3, [ended(first)])
    assert board.summary().startswith("1/3 trials · 2 waiting, 1 completed · $0.25")


def test_a_terminal_gets_a_table_and_a_file_gets_lines(tmp_path: Path) -> None:
    (plan,) = plans(tmp_path, 1)
    prepared = Preparation((plan.agent,), tmp_path, (plan.task,), (plan,), {})
    begun = Beginning(tmp_path, prepared, Slots(1, 48, Capacity(2, 1000), "they share one core"))
    told = {}
    for is_terminal in (True, False):
        console = Console(file=io.StringIO(), force_terminal=is_terminal, width=150, soft_wrap=True)
        with RunProgress(console) as progress:
            progress.begin(begun)
            progress.notify(TrialEvent(plan, 0, "agent", 3))
            progress.notify(TrialEvent(plan, 0, "ended", 3, ended(plan), is_last=True))
        told[is_terminal] = console.file.getvalue()  # type: ignore[attr-defined]
    assert told[False].splitlines() == [
        "they share one core",
        f"1 trials, records in {tmp_path}",
        "[1/1] t (null): completed, score absent, 0 steps, 1.0 s",
    ]
    assert "[1/1] t (null): completed" in told[True]
    assert "\x1b[" in told[True]


def test_lengths_of_time_are_told_as_people_do() -> None:
    assert [span(seconds) for seconds in (0.4, 89, 90, 300, 5400, 12000)] == [
        "0 s",
        "89 s",
        "2 min",
        "5 min",
        "1 h 30 min",
        "3 h 20 min",
    ]
