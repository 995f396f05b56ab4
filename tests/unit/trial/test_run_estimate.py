"""Guards what is told of a run before it is begun: every trial, and no more about time and money than is known."""

from pathlib import Path
from typing import Any

import pytest

from deskfork.trial.estimate import AROUND_S, SOLUTION_S, STEP_S, RunEstimate, plan_run

pytestmark = pytest.mark.usefixtures("csv_task")
API = {"name": "asked", "actions": "code", "observe": ["terminal"]}


@pytest.fixture
def plan(bench: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def made(**given: object) -> RunEstimate:
        return plan_run(bench.config(**given))

    return made


def test_every_trial_is_named_and_nothing_is_started_or_written(bench: Any, plan: Any) -> None:
    found = plan(agents=["oracle", "null"], repeats=2, parallel=2)
    assert [(trial.task, trial.agent, trial.repeat) for trial in found.trials] == [
        ("copy-csv", agent, repeat) for repeat in (0, 1) for agent in ("oracle", "null")
    ]
    assert [(agent.agent, agent.trials) for agent in found.agents] == [("oracle", 2), ("null", 2)]
    assert (found.parallel, found.memory_mib) == (2, 2 * found.sandbox_mib)
    assert not (bench.tmp / "runs").exists()
    assert list(bench.sandboxes.iterdir()) == []


def test_without_earlier_runs_times_are_defaults(plan: Any) -> None:
    found = plan(agents=["oracle", "null", {**API, "model": "openai:m@http://h/v1"}], **{"limits.steps": 4})
    assert [trial.seconds for trial in found.trials] == [AROUND_S + SOLUTION_S, AROUND_S, AROUND_S + 4 * STEP_S]
    assert found.earlier_trials == 0
    assert found.seconds == sum(trial.seconds for trial in found.trials)


def test_times_are_the_medians_of_earlier_trials(bench: Any, plan: Any) -> None:
    done = bench.run(repeats=3)
    found = plan(repeats=1)
    assert found.earlier_trials == 3
    assert found.seconds == pytest.approx(sorted(result.duration_s for result in done)[1], abs=2.0)
    assert found.seconds < AROUND_S


def test_cost_is_an_upper_bound_or_absent(plan: Any) -> None:
    known = {**API, "model": "openai:gpt-4o-2024-05-13"}
    assert plan(agents=[known]).max_cost_usd is None, "no limit was set"
    bounded = plan(agents=[known], repeats=2, **{"limits.tokens": 100_000})
    assert bounded.max_cost_usd == pytest.approx(2 * 100_000 * 15e-6)
    assert plan(agents=[known], repeats=2, **{"limits.cost_usd": 0.5}).max_cost_usd == 1.0
    assert plan(agents=[known], **{"budget.cost_usd": 0.2}).max_cost_usd == 0.2
    unknown = {**API, "model": "openai:m@http://h/v1"}
    assert plan(agents=[unknown], **{"limits.tokens": 100_000}).max_cost_usd is None
    assert plan(agents=["oracle", "null"]).max_cost_usd == 0.0


def test_what_is_left_out_says_why(bench: Any, plan: Any, script_task: Path) -> None:
    text = (script_task / "task.yaml").read_text()
    (script_task / "task.yaml").write_text(text.replace("solution: solution.py\n", ""))
    found = plan(agents=["oracle"])
    assert found.tasks == ("copy-csv",)
    assert "no solution" in found.skipped["script"]
