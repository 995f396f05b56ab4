"""Guards the figures of a run: absent scores are counted apart, never as 0, and guests cannot write to terminals."""

from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

from rich.console import Console

from deskfork.records.paths import create_run
from deskfork.records.reader import read_run
from deskfork.records.recorder import TrialRecorder
from deskfork.records.trial import TrialResult, TrialStatus, Verdict
from deskfork.report.aggregate import RunReport, report_results, report_run
from deskfork.report.render import printable, render_run


def result_of(task: str, score: float | None, *, agent: str = "a", reason: str = "", attempt: int = 0) -> TrialResult:
    return TrialResult(
        task=task, agent=agent, repeat=0, attempt=attempt, status=TrialStatus.COMPLETED, score=score, cost_usd=0.5,
        verdict=Verdict(score=score, reason=reason or ("" if score is not None else "why")), duration_s=1.0,
        phases_s={}, action_mix={}, started_at=datetime.now(UTC), provider="fake", template_digest="d",
    )  # fmt: skip


def text_of(report: RunReport) -> str:
    console = Console(file=StringIO(), width=200, force_terminal=True, color_system=None)
    console.print(render_run(report))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_absent_scores_are_no_zeros() -> None:
    results = [result_of("t1", 1.0), result_of("t2", 0.0), result_of("t3", None)]
    report = report_results(Path("/r"), results, planned=4, skipped={"t9": "broken"})
    (agent,) = report.agents
    assert (agent.mean_score, agent.scored, agent.absent, agent.trials, agent.cost_usd) == (0.5, 2, 1, 3, 1.5)
    text = text_of(report)
    assert "mean score 0.500 over 2 of 3 trials, 1 without a score (not counted in it)" in text
    assert "t3: why" in text
    assert "skipped t9: broken" in text
    assert "1 of 4 trials were never begun" in text


def test_agents_without_any_score_have_no_mean() -> None:
    report = report_results(Path("/r"), [result_of("t", None, agent="b"), result_of("t", 1.0)], planned=2, skipped={})
    assert [(agent.agent, agent.mean_score) for agent in report.agents] == [("a", 1.0), ("b", None)]
    assert "b: no score over 0 of 1 trials" in text_of(report)


def test_a_run_on_disk_is_summed_up_as_the_run_itself_was(tmp_path: Path) -> None:
    run = create_run(tmp_path)
    run.config.write_text("")
    results = [result_of("t1", 1.0, attempt=1), result_of("t2", None)]
    TrialRecorder(run.attempt("t1", "a", 0, 0)).close()
    for result in results:
        with TrialRecorder(run.attempt(result.task, result.agent, 0, result.attempt)) as recorder:
            recorder.write_result(result)
    told = report_results(run.root, results, planned=2, skipped={})
    read = report_run(read_run(run.root))
    assert read.trials == told.trials
    assert read.agents == told.agents
    assert read.trials[0].attempts == 2
    assert (run.root / read.trials[0].folder / "result.json").is_file()


def test_an_unfinished_trial_is_reported_as_such(tmp_path: Path) -> None:
    run = create_run(tmp_path)
    run.config.write_text("")
    TrialRecorder(run.attempt("t", "a", 0, 0)).close()
    report = report_run(read_run(run.root))
    assert (report.trials[0].status, report.trials[0].score, report.agents[0].absent) == ("unfinished", None, 1)
    assert "unfinished" in text_of(report)


def test_what_guests_wrote_is_no_terminal_command_and_no_markup() -> None:
    hostile = "\x1b]0;title\x07\x1b[2J[bold]x[/bold]\r\n\u202etxt"
    assert printable("a\x1b[2Jb\nc\u202ed") == "a [2Jb c d"
    text = text_of(report_results(Path("/r"), [result_of("t", 0.0, reason=hostile)], planned=1, skipped={}))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]x[/bold]" in text
