"""Guards going on: what ended is not repeated, what was cut off is kept, and two kinds of results never mix."""

import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from deskfork.core.errors import ConfigError
from deskfork.records.claim import claimed
from deskfork.records.paths import RunPaths
from deskfork.records.reader import read_run
from deskfork.records.trial import TrialResult, TrialStatus
from deskfork.sandbox.fake.faults import FakeFaults
from deskfork.sandbox.fake.provider import FakeProvider
from deskfork.trial.plan import TrialEvent
from deskfork.trial.resume import resume_run
from deskfork.trial.run import Beginning, RunSummary

pytestmark = pytest.mark.usefixtures("csv_task")


@pytest.fixture
def resume(bench: Any) -> Callable[..., RunSummary]:
    def run(run_dir: Path, faults: FakeFaults | None = None, begun: list[Beginning] | None = None) -> RunSummary:
        provider = FakeProvider(parent=bench.sandboxes, faults=faults)
        return resume_run(
            run_dir, notify=bench.notify, on_begin=(begun if begun is not None else []).append, provider=provider
        )

    return run


def only_run(bench: Any) -> Path:
    (run_dir,) = (bench.tmp / "runs").iterdir()
    return Path(run_dir)


def uncount(run_dir: Path, key: tuple[str, str, int], status: TrialStatus | None = None, attempt: int = 0) -> None:
    """Take an attempt's result away, as a kill before its end does; or change its status."""
    path = RunPaths(run_dir).attempt(*key, attempt).result
    if status is None:
        path.unlink()
        return
    result = TrialResult.model_validate_json(path.read_text())
    changed = {"status": status, "score": None, "phases_s": {"fork": 1.0}}
    path.write_text(result.model_copy(update=changed).model_dump_json())


def results(run_dir: Path) -> dict[tuple[int, int], tuple[str, float | None]]:
    """Return status and score of every attempt, by repeat and number."""
    found = read_run(run_dir).attempts
    return {(a.repeat, a.attempt): (a.result.status.value, a.result.score) if a.result else ("", None) for a in found}


def test_what_ended_is_not_repeated_and_what_was_cut_off_is_kept_and_run_again(bench: Any, resume: Any) -> None:
    first = bench.run(repeats=3)
    run_dir, key = only_run(bench), ("copy-csv", "oracle", 1)
    uncount(run_dir, key)
    cut = RunPaths(run_dir).attempt(*key, 0)
    with cut.trajectory.open("a") as stream:
        stream.write('{"step": 4, "model_ou')
    kept = {path: path.read_bytes() for path in run_dir.glob("trials/**/*") if path.is_file()}
    begun: list[Beginning] = []
    bench.events.clear()
    summary = resume(run_dir, begun=begun)
    assert [(r.repeat, r.attempt, r.score) for r in summary.results] == [(0, 0, 1.0), (1, 1, 1.0), (2, 0, 1.0)]
    assert (summary.results[0], summary.results[2]) == (first[0], first[2])
    assert {event.plan.key for event in bench.events} == {key}
    assert [result.repeat for result in begun[0].ended] == [0, 2]
    assert all(path.read_bytes() == content for path, content in kept.items())
    closed = TrialResult.model_validate_json(cut.result.read_text())
    assert (closed.status, closed.steps, closed.score) == (TrialStatus.CANCELLED, 3, None)
    assert closed.duration_s >= 0
    assert "when the run was resumed" in closed.error


def test_a_run_that_is_over_is_summed_up_again(bench: Any, resume: Any) -> None:
    first = bench.run(repeats=2)
    summary = resume(only_run(bench))
    assert (summary.results, summary.not_begun, summary.planned) == (first, 0, 2)


def test_a_cancelled_run_goes_on(bench: Any, resume: Any) -> None:
    def interrupt(event: TrialEvent) -> None:
        if event.plan.repeat == 1 and event.phase == "agent" and event.result is None:
            raise KeyboardInterrupt

    bench.on_event = interrupt
    bench.run(repeats=3)
    bench.on_event = lambda event: None
    resume(only_run(bench))
    assert results(only_run(bench)) == {
        (0, 0): ("completed", 1.0),
        (1, 0): ("cancelled", None),
        (1, 1): ("completed", 1.0),
        (2, 0): ("completed", 1.0),
    }


def test_a_run_cut_off_before_its_first_trial_begins_with_it(bench: Any, resume: Any) -> None:
    bench.run()
    run_dir = only_run(bench)
    for path in sorted((run_dir / "trials").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (run_dir / "lock.json").unlink()
    assert [result.score for result in resume(run_dir).results] == [1.0]
    assert read_run(run_dir).lock is not None


@pytest.mark.parametrize(
    ("status", "attempts"),
    [(TrialStatus.INFRA_ERROR, 2), (TrialStatus.SANDBOX_LOST, 2), (TrialStatus.LIMIT, 1), (TrialStatus.AGENT_ERROR, 1)],
)
def test_a_retry_that_was_still_due_is_made(bench: Any, resume: Any, status: TrialStatus, attempts: int) -> None:
    bench.run()
    uncount(only_run(bench), ("copy-csv", "oracle", 0), status)
    resume(only_run(bench))
    assert len(results(only_run(bench))) == attempts
    resume(only_run(bench))
    assert len(results(only_run(bench))) == attempts, "a trial that is over was repeated"


def test_losses_before_and_after_a_resume_are_counted_together(bench: Any, resume: Any) -> None:
    bench.run()
    run_dir = only_run(bench)
    uncount(run_dir, ("copy-csv", "oracle", 0), TrialStatus.SANDBOX_LOST)
    (result,) = resume(run_dir, FakeFaults(dies_in_cell=2)).results
    assert (result.attempt, result.status, result.score) == (1, TrialStatus.SANDBOX_LOST, 0.0)


def change_task(run_dir: Path, bench: Any) -> str:
    (bench.source / "copy-csv" / "gold.csv").write_text("other\n")
    return "task copy-csv is not what it was"


def add_task(run_dir: Path, bench: Any) -> str:
    folder = bench.source / "added"
    folder.mkdir()
    for path in (bench.source / "copy-csv").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return "task added is new"


def remove_task(run_dir: Path, bench: Any) -> str:
    add_task(run_dir, bench)
    (bench.source / "copy-csv" / "task.yaml").unlink()
    return "task copy-csv is not there any more"


def change_agent(run_dir: Path, bench: Any) -> str:
    config = yaml.safe_load((run_dir / "run.yaml").read_text())
    config["agents"][0]["cell_timeout_s"] = 3.0
    (run_dir / "run.yaml").write_text(yaml.safe_dump(config))
    return "agent oracle is not what it was"


def change_template(run_dir: Path, bench: Any) -> str:
    lock = json.loads((run_dir / "lock.json").read_text())
    lock["templates"][0]["digest"] = "another"
    (run_dir / "lock.json").write_text(json.dumps(lock))
    return "template desktop is not what it was"


@pytest.mark.parametrize("change", [change_task, add_task, remove_task, change_agent, change_template])
def test_a_run_whose_ingredients_changed_is_not_mixed(
    bench: Any, resume: Any, change: Callable[[Path, Any], str]
) -> None:
    bench.run(repeats=2)
    run_dir = only_run(bench)
    uncount(run_dir, ("copy-csv", "oracle", 1))
    named = change(run_dir, bench)
    with pytest.raises(ConfigError) as raised:
        resume(run_dir)
    assert named in str(raised.value)
    assert f"deskfork run start {run_dir}/run.yaml" in str(raised.value)
    assert results(run_dir)[1, 0] == ("", None), "something was written"


def test_a_script_that_changed_is_a_changed_agent(bench: Any, resume: Any) -> None:
    replay = bench.tmp / "steps.jsonl"
    replay.write_text('{"code": "1"}\n')
    bench.run(agents=[f"replay:{replay}"])
    replay.write_text('{"code": "2"}\n')
    with pytest.raises(ConfigError, match=r"script .*steps\.jsonl is not what it was"):
        resume(only_run(bench))


def test_a_budget_counts_what_was_used_before(bench: Any, resume: Any) -> None:
    bench.run(repeats=2)
    run_dir = only_run(bench)
    path = RunPaths(run_dir).attempt("copy-csv", "oracle", 0, 0).result
    result = json.loads(path.read_text())
    path.write_text(json.dumps({**result, "tokens": {"input_tokens": 900, "output_tokens": 200}}))
    uncount(run_dir, ("copy-csv", "oracle", 1))
    config = yaml.safe_load((run_dir / "run.yaml").read_text())
    (run_dir / "run.yaml").write_text(yaml.safe_dump({**config, "budget": {"tokens": 1000}}))
    summary = resume(run_dir)
    assert summary.budget_reached == "run budget of 1000 tokens reached (1100 used)"
    assert [result.status.value for result in summary.results] == ["completed", "cancelled"]
    (run_dir / "run.yaml").write_text(yaml.safe_dump({**config, "budget": {"tokens": 2000}}))
    assert [result.score for result in resume(run_dir).results] == [1.0, 1.0]


def test_a_folder_that_is_of_no_trial_is_named(bench: Any, resume: Any) -> None:
    bench.run()
    stray = only_run(bench) / "trials/copy-csv/oracle/7/attempt-0"
    stray.mkdir(parents=True)
    with pytest.raises(ConfigError, match="7/attempt-0 is of no trial of this run"):
        resume(only_run(bench))


def test_what_is_no_run_is_refused_and_left_alone(tmp_path: Path, resume: Any) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="no run directory"):
        resume(tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []


def hold(run_dir: Path, has_begun: Any, may_end: Any) -> None:
    with claimed(RunPaths(run_dir)):
        has_begun.set()
        may_end.wait(60)


def test_two_processes_never_work_on_one_run(bench: Any, resume: Any) -> None:
    bench.run()
    context = multiprocessing.get_context("fork")
    has_begun, may_end = context.Event(), context.Event()
    other = context.Process(target=hold, args=(only_run(bench), has_begun, may_end))
    other.start()
    assert has_begun.wait(30)
    with pytest.raises(ConfigError, match=f"process {other.pid} works on this run"):
        resume(only_run(bench))
    other.kill()
    other.join(30)
    assert len(resume(only_run(bench)).results) == 1
