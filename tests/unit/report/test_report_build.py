"""Guards a report on runs: absent scores taken for 0, agents mixed up between runs, pairs treated as strangers."""

import json
from pathlib import Path

import pytest
from synthetic_runs import add_trial, lock_of, model_agent, new_run, plausible_run, result_of, step_of

from deskfork.core.errors import ConfigError
from deskfork.records.paths import RunPaths
from deskfork.records.reader import read_run
from deskfork.records.trial import TokenUsage, TrialStatus
from deskfork.report.build import build_report
from deskfork.report.markdown import markdown_sections
from deskfork.report.model import AgentSummary, Comparison, Report
from deskfork.report.tables import headline, sections, trial_section

TASKS = ["one-a", "one-v", "two-a", "two-v", "lone"]
AGENTS = [
    model_agent("good"),
    model_agent("bad"),
    {"kind": "oracle", "name": "oracle"},
    {"kind": "null", "name": "null"},
]


@pytest.fixture
def run(tmp_path: Path) -> RunPaths:
    return new_run(tmp_path / "runs", lock_of(TASKS, AGENTS))


def report_on(*runs: RunPaths) -> Report:
    return build_report([read_run(run.root) for run in runs])


def agent_of(report: Report, name: str) -> AgentSummary:
    return next(agent for agent in report.agents if agent.agent == name)


def compared(report: Report, verdict: str = "score") -> Comparison:
    return next(found for found in report.comparisons if found.verdict == verdict)


def test_trials_without_a_score_are_counted_and_are_in_no_rate(run: RunPaths) -> None:
    add_trial(run, result_of("one-a", "good", 1.0))
    add_trial(run, result_of("one-v", "good", 0.5, strict_score=0.0))
    add_trial(run, result_of("two-a", "good", None))
    add_trial(run, result_of("two-v", "good", None))
    run.attempt("lone", "good", 0, 0).root.mkdir(parents=True)
    agent = agent_of(report_on(run), "good")
    assert (agent.trials, agent.scored, agent.success.trials, agent.success.successes) == (5, 2, 2, 1)
    assert agent.mean_score == 0.75
    assert (agent.strict_success.successes, agent.mean_strict_score) == (1, 0.5)
    assert [(one.status, one.trials) for one in agent.absent] == [("infra_error", 2), ("unfinished", 1)]
    assert agent.self_report.absent == 3
    assert {mode.rule: mode.absent for mode in agent.failure_modes} == {"infrastructure_error": 2}


def test_what_is_unknown_stays_visible(run: RunPaths) -> None:
    add_trial(run, result_of("one-a", "good", 1.0, tokens=TokenUsage(input_tokens=10), cost_usd=None))
    add_trial(run, result_of("one-v", "good", 1.0, tokens=None, cost_usd=None))
    agent = agent_of(report_on(run), "good")
    assert (agent.tokens.known, agent.tokens.unknown, agent.tokens.median, agent.tokens.total) == (1, 1, 10.0, None)
    assert (agent.cost_usd.known, agent.cost_usd.median, agent.cost_usd.total) == (0, None, None)
    table = next(section for section in sections(report_on(run)) if section.name == "effort")
    assert "10 [10, 10], 1 unknown" in table.rows[0]
    assert table.rows[0].count("unknown") == 3


def test_agents_are_compared_at_what_both_have_scores_of(run: RunPaths) -> None:
    for task, good, bad in [("one-a", 1.0, 0.0), ("one-v", 1.0, 0.0), ("two-a", 1.0, 1.0), ("two-v", 0.0, None)]:
        add_trial(run, result_of(task, "good", good))
        add_trial(run, result_of(task, "bad", bad))
    add_trial(run, result_of("lone", "good", 1.0))
    found = compared(report_on(run))
    assert (found.first, found.second, found.tasks, found.tasks_dropped) == ("bad", "good", 3, 2)
    assert (found.mcnemar.trials, found.trials_dropped) == (3, 2)
    assert (found.first_mean, found.second_mean) == (pytest.approx(1 / 3), 1.0)
    assert found.mean is not None
    assert (found.mean.difference, found.mean.clusters) == (pytest.approx(-2 / 3), 2)
    assert (found.signed_rank.nonzero, found.signed_rank.rank_biserial) == (2, -1.0)
    assert (found.mcnemar.only_first, found.mcnemar.only_second, found.mcnemar.p) == (0, 2, 0.5)


def test_bounds_are_in_the_table_and_not_among_the_contestants(run: RunPaths) -> None:
    for agent, score in (("good", 1.0), ("bad", 0.0), ("oracle", 1.0), ("null", 0.0)):
        add_trial(run, result_of("one-a", agent, score))
    report = report_on(run)
    assert [(agent.agent, agent.kind, agent.is_bound) for agent in report.agents] == [
        ("bad", "model", False), ("good", "model", False), ("null", "null", True), ("oracle", "oracle", True),
    ]  # fmt: skip
    assert {(found.first, found.second) for found in report.comparisons} == {("bad", "good")}


def test_one_agent_is_compared_with_its_bounds(run: RunPaths) -> None:
    for agent, score in (("good", 1.0), ("null", 0.0)):
        add_trial(run, result_of("one-a", agent, score))
    assert {(found.first, found.second) for found in report_on(run).comparisons} == {("good", "null")}


def test_p_values_are_corrected_within_a_verdict(tmp_path: Path) -> None:
    report = report_on(plausible_run(tmp_path, agents=["a", "b", "c"], pairs=6, repeats=2))
    for verdict in ("score", "strict"):
        found = [each for each in report.comparisons if each.verdict == verdict]
        assert len(found) == 3
        for each in found:
            assert each.signed_rank.p is not None
            assert each.signed_rank_p_holm is not None
            assert each.signed_rank.p <= each.signed_rank_p_holm <= 1
        least = min(found, key=lambda each: each.signed_rank.p or 0)
        assert least.signed_rank_p_holm == pytest.approx(min(1, 3 * (least.signed_rank.p or 0)))


def test_one_agent_in_two_runs_is_two_agents_and_differences_are_told(tmp_path: Path) -> None:
    lock = lock_of(["one-a", "one-v"], [model_agent("a"), model_agent("alone")])
    template = lock.templates[0].model_copy(update={"digest": "u" * 64, "image_digest": "j" * 64})
    changed = {"templates": (template,), "tasks": {"one-a": "sha256:other", "one-v": "sha256:one-v", "new": "sha256:n"}}
    first = new_run(tmp_path / "x", lock)
    second = new_run(tmp_path / "y", lock.model_copy(update=changed))
    for run in (first, second):
        add_trial(run, result_of("one-a", "a", 1.0))
    add_trial(first, result_of("one-v", "alone", 1.0))
    report = report_on(first, second)
    labels = [run.label for run in report.runs]
    assert [agent.agent for agent in report.agents] == sorted([*(f"a@{label}" for label in labels), "alone"])
    told = " ".join(report.warnings)
    assert f"runs {labels[0]} and {labels[1]} differ in the guest image of jupyter" in told
    assert "differ in the template jupyter" in told
    assert "(tasks digest): one-a" in told
    assert "1 are in one of them only (new)" in told
    assert "qemu" not in told


def test_runs_made_alike_give_no_warning_of_it(tmp_path: Path) -> None:
    lock = lock_of(["one-a"], [model_agent("a")])
    runs = [new_run(tmp_path / name, lock) for name in "xy"]
    for run in runs:
        add_trial(run, result_of("one-a", "a", 1.0))
    assert not [warning for warning in report_on(*runs).warnings if "differ" in warning]


def test_tasks_are_grouped_by_their_tags_as_they_were(tmp_path: Path) -> None:
    run = new_run(tmp_path, lock_of(["easy"], AGENTS, tags={"easy": ("csv", "quick")}))
    add_trial(run, result_of("easy", "good", 1.0))
    agent = agent_of(report_on(run), "good")
    assert [(group.name, group.success.successes) for group in agent.by_tag] == [("csv", 1), ("quick", 1)]
    assert [group.name for group in agent.by_evaluator] == ["compare_csv"]


def test_said_and_scored_are_crossed(run: RunPaths) -> None:
    said = [("done", 1.0), ("done", 0.0), ("done", 0.0), ("failed", 0.0), (None, 1.0), (None, 0.0), ("done", None)]
    for repeat, (says, score) in enumerate(said):
        add_trial(run, result_of("one-a", "good", score, repeat, self_report=says))
    found = agent_of(report_on(run), "good").self_report
    assert (found.done_success, found.done_failure, found.failed_success, found.failed_failure) == (1, 2, 0, 1)
    assert (found.silent_success, found.silent_failure, found.absent) == (1, 1, 1)


def test_actions_are_summed_apart_for_successes_and_failures(run: RunPaths) -> None:
    for repeat, (score, gui) in enumerate([(1.0, 1), (1.0, 3), (0.0, 2), (0.0, 4), (None, 9)]):
        mix = {"action_mix": {"gui": 1}, "line_mix": {"gui": gui, "code": 4}}
        add_trial(run, result_of("one-a", "good", score, repeat, **mix))
    found = agent_of(report_on(run), "good").actions
    assert (found.lines_success, found.lines_failure) == ({"code": 8, "gui": 4}, {"code": 8, "gui": 6})
    assert (found.steps_success, found.steps_failure) == ({"gui": 2}, {"gui": 2})
    assert found.gui_ratio_success == pytest.approx((1 / 5 + 3 / 7) / 2)
    assert (found.fit.outcome, found.fit.trials) == ("fitted", 4)


def test_repeats_give_pass_at_k(run: RunPaths) -> None:
    for repeat, score in enumerate([1.0, 0.0, None]):
        add_trial(run, result_of("one-a", "good", score, repeat))
    found = agent_of(report_on(run), "good").passes
    assert [(each.k, each.any_of, each.all_of) for each in found] == [(1, 0.5, 0.5), (2, 1.0, 0.0)]


def test_failure_modes_name_the_step(run: RunPaths) -> None:
    steps = [step_of(n, "pyautogui.click(1, 2)", {"gui": 1}, screen="screens/a.png") for n in (1, 2, 3)]
    add_trial(run, result_of("one-a", "good", 0.0, self_report="done"), steps)
    report = report_on(run)
    assert report.trials[0].failure_modes == {"claimed_success": 3, "click_without_effect": 2, "repeated_action": 3}
    modes = {mode.rule: (mode.failures, mode.occurrences) for mode in agent_of(report, "good").failure_modes}
    assert modes == {"claimed_success": (1, 1), "click_without_effect": (1, 2), "repeated_action": (1, 1)}
    [table] = [section for section in sections(report) if section.name == "failure_modes"]
    assert [row[-1] for row in table.rows] == ["one-a good #0 step 3", "one-a good #0 step 2", "one-a good #0 step 3"]


def test_the_last_attempt_counts(run: RunPaths) -> None:
    lost = {"status": TrialStatus.SANDBOX_LOST, "attempt": 0}
    add_trial(run, result_of("one-a", "good", None, **lost))
    add_trial(run, result_of("one-a", "good", 1.0, attempt=1))
    report = report_on(run)
    assert (len(report.trials), report.trials[0].attempts, report.trials[0].score) == (1, 2, 1.0)


def test_runs_without_trials_or_lock_are_reported(tmp_path: Path) -> None:
    empty, cut = new_run(tmp_path / "x", lock_of(["one-a"], AGENTS)), new_run(tmp_path / "y", None)
    assert report_on(empty).agents == ()
    add_trial(cut, result_of("t", "good", 1.0))
    report = report_on(empty, cut)
    assert agent_of(report, "good").kind == "unknown"
    assert any("cut off before it wrote" in warning for warning in report.warnings)
    assert sections(report_on(empty)) == []


def test_a_corrupt_trajectory_is_named(run: RunPaths) -> None:
    folder = add_trial(run, result_of("one-a", "good", 1.0))
    (folder / "trajectory.jsonl").write_text("{}\n")
    with pytest.raises(ConfigError, match=r"trajectory\.jsonl, line 1"):
        report_on(run)


def test_a_report_is_json_and_the_same_twice(tmp_path: Path) -> None:
    run = plausible_run(tmp_path, agents=["a", "b"], pairs=3, repeats=2)
    told = report_on(run).model_dump_json()
    assert json.loads(told)["agents"][0]["agent"] == "a"
    assert told == report_on(run).model_dump_json()
    assert Report.model_validate_json(told) == report_on(run)


def test_markdown_has_every_table_and_no_markup_of_guests(run: RunPaths) -> None:
    add_trial(run, result_of("one-a", "good", None, verdict={"reason": "a|b <script>\n# x\x1b[2J"}))
    report = report_on(run)
    text = markdown_sections(headline(report), report.warnings, [*sections(report), trial_section(report)])
    assert r"a\|b \<script\> \# x \[2J" in text
    assert "\x1b" not in text
    assert "## Trials without a score" in text
    [trial] = [line for line in text.splitlines() if line.startswith("| one-a | abstract")]
    assert trial.replace(r"\|", "").count("|") == 12 + 1
