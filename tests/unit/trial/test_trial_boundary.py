"""Guards the trial boundary: an error in any phase becomes a status and a reason, is on disk, and closes the sandbox.

Absent is never 0, and our own failures never count against an agent. The `bench` fixture checks that nothing is left.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deskfork.records.reader import read_trajectory
from deskfork.records.trial import TrialStatus
from deskfork.sandbox.fake.faults import FakeFaults
from deskfork.trial.plan import TrialEvent

pytestmark = pytest.mark.usefixtures("csv_task")
FIRST_AGENT_CELL = 2  # the first is our own prelude


def statuses(bench: Any) -> list[tuple[int, TrialStatus, float | None]]:
    """Return what is on disk of all attempts."""
    return [(a.attempt, a.result.status, a.result.score) for a in bench.records().attempts if a.result]


def test_a_solved_task_scores_1_and_leaves_every_record(bench: Any) -> None:
    (result,) = bench.run()
    assert (result.status, result.score, result.steps, result.answer) == (TrialStatus.COMPLETED, 1.0, 3, "copied")
    assert result.ending == "final answer"
    assert set(result.phases_s) == {"fork", "setup", "agent", "evaluate", "logs", "close"}
    assert sum(result.phases_s.values()) <= result.duration_s
    (attempt,) = bench.records().attempts
    assert attempt.result == result
    steps = read_trajectory(attempt.paths)
    assert [step.step for step in steps] == [1, 2, 3]
    assert steps[-1].is_final
    assert all((attempt.paths.root / str(step.screen)).is_file() for step in steps)
    assert sum(result.action_mix.values()) == 3
    assert json.loads(attempt.paths.messages.read_text())[0]["role"] == "system"
    assert any(attempt.paths.guest.iterdir())
    assert "score: 1.0" in (attempt.paths.logs / "trial.log").read_text()


def test_doing_nothing_scores_0_which_is_not_absent(bench: Any) -> None:
    (result,) = bench.run(agents=["null"])
    assert (result.status, result.score, result.steps) == (TrialStatus.COMPLETED, 0.0, 0)


def test_a_fork_that_fails_once_is_tried_again_and_both_attempts_are_kept(bench: Any) -> None:
    (result,) = bench.run(FakeFaults(failing_forks=1))
    assert (result.attempt, result.score) == (1, 1.0)
    assert statuses(bench) == [(0, TrialStatus.INFRA_ERROR, None), (1, TrialStatus.COMPLETED, 1.0)]


def test_a_fork_that_fails_again_ends_the_trial_without_a_score(bench: Any) -> None:
    (result,) = bench.run(FakeFaults(failing_forks=9))
    assert (result.attempt, result.status, result.score) == (1, TrialStatus.INFRA_ERROR, None)
    assert "did not come up" in result.error
    assert "did not come up" in result.verdict.reason


@pytest.mark.usefixtures("bad_setup_task")
def test_a_set_up_that_fails_is_ours_and_the_other_trials_go_on(bench: Any) -> None:
    bad, good = bench.run()
    assert (bad.task, bad.attempt, bad.status, bad.score) == ("bad-setup", 1, TrialStatus.INFRA_ERROR, None)
    assert "no luck" in bad.error
    assert good.score == 1.0


def test_a_sandbox_that_dies_in_a_cell_once_is_tried_again(bench: Any) -> None:
    (result,) = bench.run(FakeFaults(dies_in_cell=FIRST_AGENT_CELL, dying_sandboxes=1))
    assert (result.attempt, result.score) == (1, 1.0)
    assert statuses(bench) == [(0, TrialStatus.SANDBOX_LOST, None), (1, TrialStatus.COMPLETED, 1.0)]


def test_a_sandbox_that_dies_in_an_agents_cell_again_scores_0_and_says_why(bench: Any) -> None:
    (result,) = bench.run(FakeFaults(dies_in_cell=FIRST_AGENT_CELL))
    assert (result.attempt, result.status, result.score) == (1, TrialStatus.SANDBOX_LOST, 0.0)
    assert "taken to have destroyed it" in result.verdict.reason
    assert "machine is gone" in result.error
    assert statuses(bench) == [(0, TrialStatus.SANDBOX_LOST, None), (1, TrialStatus.SANDBOX_LOST, 0.0)]
    steps = read_trajectory(bench.records().attempts[-1].paths)
    assert "KernelLost" in str(steps[-1].error)


def test_a_loss_is_counted_as_such_across_a_fork_that_failed(bench: Any) -> None:
    (result,) = bench.run(FakeFaults(failing_forks=1, dies_in_cell=FIRST_AGENT_CELL))
    assert (result.attempt, result.score) == (2, 0.0)


def test_a_sandbox_that_dies_in_our_own_prelude_is_not_the_agents_doing(bench: Any) -> None:
    (result,) = bench.run(FakeFaults(dies_in_cell=1))
    assert (result.status, result.score) == (TrialStatus.INFRA_ERROR, None)


def test_an_agent_that_ends_its_kernel_is_the_one_that_did(bench: Any, add_task: Callable[..., Path]) -> None:
    add_task("suicide", "# %%\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    (result,) = bench.run(tasks="suicide")
    assert (result.attempt, result.status, result.score) == (1, TrialStatus.SANDBOX_LOST, 0.0)


@pytest.mark.usefixtures("script_task")
def test_a_final_state_that_cannot_be_examined_gives_no_score(bench: Any) -> None:
    (result,) = bench.run(FakeFaults(failing_examinations=100), tasks="script", agents=["null"])
    assert (result.status, result.score) == (TrialStatus.INFRA_ERROR, None)
    assert result.error.startswith("evaluate: ")


@pytest.mark.usefixtures("script_task")
def test_a_machine_lost_before_it_could_examine_a_final_state_is_tried_once_more(bench: Any) -> None:
    (result,) = bench.run(FakeFaults(failing_examinations=1), tasks="script", agents=["null"])
    assert (result.attempt, result.status, result.score) == (0, TrialStatus.COMPLETED, 1.0)


def test_a_state_that_cannot_be_judged_gives_no_score_and_keeps_the_status(bench: Any, csv_task: Path) -> None:
    def remove_gold(event: TrialEvent) -> None:
        if event.phase == "agent" and not event.step:
            (csv_task / "gold.csv").unlink()

    bench.on_event = remove_gold
    (result,) = bench.run()
    assert (result.status, result.score) == (TrialStatus.COMPLETED, None)
    assert "gold.csv" in result.verdict.reason


def test_hitting_a_limit_is_evaluated(bench: Any) -> None:
    (result,) = bench.run(**{"limits.steps": 2})
    assert (result.status, result.score, result.ending) == (TrialStatus.LIMIT, 1.0, "limit of 2 steps")
    assert result.error == ""


def test_an_agents_own_error_is_evaluated(bench: Any, add_task: Callable[..., Path]) -> None:
    add_task("fails", "# %%\nraise ValueError('mine')\n")
    (result,) = bench.run(tasks="fails")
    assert (result.status, result.score) == (TrialStatus.AGENT_ERROR, 0.0)
    assert "mine" in result.error


def test_a_bug_of_ours_is_recorded_with_its_traceback(bench: Any) -> None:
    def break_down(event: TrialEvent) -> None:
        if event.phase == "evaluate":
            raise ZeroDivisionError("oops")

    bench.on_event = break_down
    (result,) = bench.run()
    assert (result.status, result.score) == (TrialStatus.INFRA_ERROR, None)
    assert "unexpected ZeroDivisionError: oops" in result.error
    log = (bench.records().attempts[0].paths.logs / "trial.log").read_text()
    assert "Traceback" in log


@pytest.mark.parametrize("phase", ["fork", "setup", "agent", "evaluate"])
def test_an_interrupt_in_any_phase_is_recorded_and_ends_the_run(bench: Any, phase: str) -> None:
    def interrupt(event: TrialEvent) -> None:
        if event.phase == phase:
            raise KeyboardInterrupt

    bench.on_event = interrupt
    (result,) = bench.run(repeats=3)
    assert (result.status, result.score, result.attempt) == (TrialStatus.CANCELLED, None, 0)
    assert result.error == f"cancelled in {phase}"
    assert statuses(bench) == [(0, TrialStatus.CANCELLED, None)]
    assert bench.summary.planned == 3


@pytest.mark.parametrize("parallel", [1, 3])
def test_repeats_are_trials_of_their_own(bench: Any, parallel: int) -> None:
    results = bench.run(repeats=3, parallel=parallel)
    assert [(result.repeat, result.score) for result in results] == [(0, 1.0), (1, 1.0), (2, 1.0)]
    assert len({result.sandbox for result in results}) == 3
    assert len(bench.records().attempts) == 3


@pytest.mark.parametrize("folder", ["logs", "guest"])
def test_a_record_that_cannot_be_written_closes_the_sandbox_and_takes_the_score(bench: Any, folder: str) -> None:
    def block(event: TrialEvent) -> None:
        if event.phase == "fork":
            paths = bench.attempt_paths(event)
            (paths.root / folder).rmdir()
            (paths.root / folder).write_text("in the way")

    bench.on_event = block
    (result,) = bench.run()
    assert (result.status, result.score) == (TrialStatus.INFRA_ERROR, None)
    assert folder in result.error


def test_a_host_without_room_is_never_taken_for_the_agents_doing(bench: Any) -> None:
    (result,) = bench.run(FakeFaults(host_full_in_cell=FIRST_AGENT_CELL))
    assert (result.status, result.score) == (TrialStatus.INFRA_ERROR, None)
    assert "disk is full" in result.error
