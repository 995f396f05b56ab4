"""Guards the report of two wordings and two verdicts: scores that are mixed up, hidden or counted twice."""

from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from deskfork.records.lock import RunLock, TaskWording
from deskfork.records.paths import RunPaths, create_run
from deskfork.records.reader import read_run
from deskfork.records.recorder import TrialRecorder
from deskfork.records.trial import TrialResult, TrialStatus, Verdict
from deskfork.report.aggregate import RunReport, report_results, report_run
from deskfork.report.markdown import markdown_run
from deskfork.report.render import render_run
from deskfork.report.words import skipped_lines

WORDINGS = {
    "a1": TaskWording(wording="abstract", counterpart="v1"),
    "v1": TaskWording(wording="verbose", counterpart="a1"),
    "v2": TaskWording(wording="verbose", counterpart="a2"),
    "odd": TaskWording(wording="abstract", counterpart="v1"),
}


def result_of(
    task: str, score: float | None, strict: float | None, *, agent: str = "a", repeat: int = 0, difference: str = ""
) -> TrialResult:
    verdict = Verdict(
        score=score, strict_score=strict, reason="" if score is not None else "why", difference=difference
    )
    return TrialResult(
        task=task, agent=agent, repeat=repeat, attempt=0, status=TrialStatus.COMPLETED, score=score,
        strict_score=strict, verdict=verdict, duration_s=1.0, phases_s={}, action_mix={},
        started_at=datetime.now(UTC), provider="fake", template_digest="d",
    )  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> RunPaths:
    paths = create_run(tmp_path)
    paths.config.write_text("")
    lock = RunLock(
        run_id="r", created_at=datetime.now(UTC), provider="fake", templates=(), tasks={}, wordings=WORDINGS, agent={},
        packages={}, python="3", host="h", commit=None,
    )  # fmt: skip
    paths.lock.write_text(lock.model_dump_json())
    return paths


RESULTS = [
    result_of("v1", 1.0, 0.0, difference="an empty object passes upstream"),
    result_of("lone", 1.0, 1.0),
    result_of("v2", 0.0, 0.0),
    result_of("a1", 0.0, 0.0),
    result_of("a1", 1.0, 1.0, repeat=1),
    result_of("v1", None, None, repeat=1),
    result_of("v1", 0.0, 0.0, agent="b"),
    result_of("odd", 1.0, 1.0),
]


def report_of(run: RunPaths) -> RunReport:
    return report_results(run.root, RESULTS, planned=len(RESULTS) + 1, skipped={})


def text_of(report: RunReport) -> str:
    file = StringIO()
    Console(file=file, width=100, color_system=None).print(render_run(report))
    return file.getvalue()


def test_the_two_of_a_pair_are_reported_together(run: RunPaths) -> None:
    report = report_of(run)
    assert [(trial.task, trial.wording, trial.agent, trial.repeat) for trial in report.trials] == [
        ("a1", "abstract", "a", 0),
        ("a1", "abstract", "a", 1),
        ("v1", "verbose", "a", 0),
        ("v1", "verbose", "a", 1),
        ("v1", "verbose", "b", 0),
        ("lone", None, "a", 0),
        ("v2", "verbose", "a", 0),
        ("odd", "abstract", "a", 0),
    ]
    [pair] = report.pairs
    assert (pair.agent, pair.abstract.task, pair.verbose.task) == ("a", "a1", "v1")
    assert (pair.abstract.mean_score, pair.abstract.mean_strict_score, pair.abstract.scored) == (0.5, 0.5, 2)
    assert (pair.verbose.mean_score, pair.verbose.mean_strict_score) == (1.0, 0.0)
    assert (pair.verbose.trials, pair.verbose.scored) == (2, 1)


def test_both_means_are_given_and_where_they_differ(run: RunPaths) -> None:
    report = report_of(run)
    agents = {agent.agent: agent for agent in report.agents}
    assert agents["a"].mean_score == pytest.approx(4 / 6)
    assert agents["a"].mean_strict_score == pytest.approx(3 / 6)
    assert (agents["a"].differing, agents["b"].differing) == (1, 0)
    text = text_of(report)
    assert "v1: score and strict differ: an empty object passes upstream" in text
    said = "a: mean score 0.667 over 6 of 7 trials, 1 without a score (not counted in it), mean strict score 0.500 (1"
    assert said in " ".join(text.split())
    words = [line.split() for line in text.splitlines()]
    assert ["v1", "0", "a", "completed", "1.000", "0.000", "0", "1.0", "s"] in words
    assert ["a1,", "v1", "a", "0.500", "0.500", "1.000", "0.000"] in words
    assert ["mean", "of", "1", "a", "0.500", "0.500", "1.000", "0.000"] in words


def test_what_is_on_disk_is_reported_alike(run: RunPaths) -> None:
    for result in RESULTS:
        with TrialRecorder(run.attempt(result.task, result.agent, result.repeat, result.attempt)) as recorder:
            recorder.write_result(result)
    read = report_run(read_run(run.root))
    told = report_of(run)
    assert read.pairs == told.pairs
    assert read.agents == told.agents
    assert sorted(map(str, read.trials)) == sorted(map(str, told.trials))


def test_markdown_holds_the_same_and_no_markup_of_guests(run: RunPaths) -> None:
    hostile = result_of("t|x", 0.0, 0.0).model_copy(update={"error": "<b>`x`|\n# head\x1b[2J"})
    report = report_results(run.root, [*RESULTS, hostile], planned=99, skipped={"s": "task s cannot be run: x"})
    text = markdown_run(report)
    assert "| a1, v1 | a | 0.500 | 0.500 | 1.000 | 0.000 |" in text
    assert "| v1 | verbose | a | 0 | completed | 1.000 | 0.000 | 0 | 1.0 s |" in text
    assert "90 of 99 trials were never begun." in text
    assert r"- t\|x: \<b\>\`x\`\| \# head \[2J" in text
    assert "- skipped s: cannot be run: x" in text
    assert "\x1b" not in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert len(tables) == 2 + 2 + 2 + 9


def test_a_run_without_pairs_has_no_table_of_them(tmp_path: Path) -> None:
    report = report_results(tmp_path, [result_of("t", 1.0, 1.0)], planned=1, skipped={})
    assert report.pairs == ()
    assert "pair:" not in text_of(report)
    assert "## Pairs" not in markdown_run(report)


def test_tasks_that_were_left_out_are_told_by_reason() -> None:
    same = {f"s{n}": f"task s{n} cannot be run: it needs a lake" for n in range(40)}
    assert skipped_lines(same) == ["skipped 40 tasks (s0, s1, s2, …): cannot be run: it needs a lake"]
    assert skipped_lines({"a": "task a: broken", "b": "other"}) == ["skipped a: broken", "skipped b: other"]
    *told, last = skipped_lines({f"s{n}": f"reason {n}" for n in range(20)})
    assert len(told) == 8
    assert last == "skipped 12 more for other reasons; `deskfork task list` says which"
