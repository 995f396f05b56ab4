"""Guards what a trial leaves: nothing is overwritten, nothing is half there, and what cannot be written is said."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PIL import Image

from deskfork.core.errors import ConfigError, InfraError
from deskfork.records.paths import AttemptPaths, create_run, folder_name
from deskfork.records.reader import read_run, read_trajectory
from deskfork.records.recorder import TrialRecorder
from deskfork.records.trajectory import StepRecord
from deskfork.records.trial import TrialResult, TrialStatus, Verdict

STEP = StepRecord(
    step=1, model_output="é\n", code="1", action="code", stdout="", stderr="", error=None,
    model_s=0, guest_s=0, observe_s=0, framework_s=0,
)  # fmt: skip


def result_of(score: float | None, *, task: str = "t", repeat: int = 0, attempt: int = 0) -> TrialResult:
    return TrialResult(
        task=task, agent="oracle", repeat=repeat, attempt=attempt, status=TrialStatus.COMPLETED, score=score,
        verdict=Verdict(score=score, reason="" if score is not None else "broken"), duration_s=1.0, phases_s={},
        action_mix={}, started_at=datetime.now(UTC), provider="fake", template_digest="d",
    )  # fmt: skip


def test_run_ids_are_unique_and_sort_by_time(tmp_path: Path) -> None:
    early = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    runs = [create_run(tmp_path, now=early) for _ in range(20)]
    later = create_run(tmp_path, now=early.replace(microsecond=7))
    assert len({run.id for run in runs}) == 20
    assert max(run.id for run in runs) < later.id
    assert re.fullmatch(r"20260102T030405\.000006Z-[0-9a-f]{6}", runs[0].id)


def test_a_place_that_cannot_hold_runs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="--out"):
        create_run(tmp_path / "file")


@pytest.mark.parametrize("label", ["../../etc", "a/b", ".hidden", "", "ü", "a" * 200, "..", "-x"])
def test_a_label_never_leads_out_of_its_folder_nor_meets_another(label: str) -> None:
    name = folder_name(label)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name)
    assert name != folder_name(label + "!")
    assert folder_name("replay_1.x-y") == "replay_1.x-y"


def test_equal_screens_are_kept_once_and_different_ones_as_they_were(tmp_path: Path) -> None:
    red, blue = Image.new("RGB", (40, 30), "red"), Image.new("RGB", (40, 30), "blue")
    flat = Image.new("RGB", (30, 40), "red")
    with TrialRecorder(AttemptPaths(tmp_path / "a")) as recorder:
        names = [recorder.screens.save(image, step) for step, image in enumerate((red, blue, red.copy(), flat))]
        blue.paste("green", (0, 0, 40, 30))  # what is kept is what was handed over
    assert names[0] == names[2]
    assert len(set(names)) == 3
    assert len(list((tmp_path / "a" / "screens").iterdir())) == 3
    with Image.open(tmp_path / "a" / names[1]) as kept:
        assert kept.getpixel((0, 0)) == (0, 0, 255)


def test_a_screen_that_cannot_be_written_is_told_at_the_end_at_the_latest(tmp_path: Path) -> None:
    def record() -> None:
        with TrialRecorder(AttemptPaths(tmp_path / "a")) as recorder:
            recorder.paths.screens.rmdir()
            recorder.screens.save(Image.new("RGB", (4, 4)), 1)

    with pytest.raises(InfraError, match=r"screens.*could not be written"):
        record()


def test_many_screens_are_all_there_after_closing(tmp_path: Path) -> None:
    with TrialRecorder(AttemptPaths(tmp_path / "a")) as recorder:
        names = {recorder.screens.save(Image.new("RGB", (300, 200), (n, n, n)), n) for n in range(40)}
    assert {f"screens/{path.name}" for path in (tmp_path / "a" / "screens").iterdir()} == names


def test_a_step_is_on_disk_as_soon_as_it_is_added(tmp_path: Path) -> None:
    with TrialRecorder(AttemptPaths(tmp_path / "a")) as recorder:
        recorder.add_step(STEP)
        assert read_trajectory(recorder.paths) == (STEP,)


def test_a_step_that_cannot_be_written_names_the_file(tmp_path: Path) -> None:
    recorder = TrialRecorder(AttemptPaths(tmp_path / "a"))
    recorder.close()
    with pytest.raises(InfraError, match=r"trajectory\.jsonl: could not be written"):
        recorder.add_step(STEP)


def test_an_attempt_and_its_result_are_never_overwritten(tmp_path: Path) -> None:
    paths = AttemptPaths(tmp_path / "a")
    with TrialRecorder(paths) as recorder:
        recorder.write_result(result_of(1.0))
        with pytest.raises(ConfigError, match="never overwritten"):
            recorder.write_result(result_of(0.0))
    with pytest.raises(ConfigError, match="never overwritten"):
        TrialRecorder(paths)
    assert TrialResult.model_validate_json(paths.result.read_text()).score == 1.0


def test_an_absent_score_is_null_on_disk(tmp_path: Path) -> None:
    with TrialRecorder(AttemptPaths(tmp_path / "a")) as recorder:
        recorder.write_result(result_of(None))
    assert '"score": null' in recorder.paths.result.read_text()


def test_reading_gives_the_last_attempts_and_tells_the_unfinished(tmp_path: Path) -> None:
    run = create_run(tmp_path)
    run.config.write_text("agent: oracle\n")
    for attempt in (0, 1):
        with TrialRecorder(run.attempt("t", "oracle", 0, attempt)) as recorder:
            recorder.write_result(result_of(float(attempt), attempt=attempt))
    TrialRecorder(run.attempt("t", "oracle", 1, 0)).close()
    found = read_run(run.root)
    assert len(found.attempts) == 3
    assert [(t.repeat, t.attempt, t.result and t.result.score) for t in found.trials()] == [(0, 1, 1.0), (1, 0, None)]
    assert found.lock is None


def test_ten_attempts_sort_by_number(tmp_path: Path) -> None:
    run = create_run(tmp_path)
    run.config.write_text("")
    for repeat in range(11):
        TrialRecorder(run.attempt("t", "a", repeat, 0)).close()
    assert [attempt.repeat for attempt in read_run(run.root).attempts] == list(range(11))


@pytest.mark.parametrize("content", ["", "{", '{"task": "t"}', "\xff", "null"])
def test_a_corrupt_result_is_named(tmp_path: Path, content: str) -> None:
    run = create_run(tmp_path)
    run.config.write_text("")
    TrialRecorder(run.attempt("t", "a", 0, 0)).close()
    run.attempt("t", "a", 0, 0).result.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"attempt-0/result\.json"):
        read_run(run.root)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no run directory"):
        read_run(tmp_path)


def test_a_trajectory_cut_off_in_its_last_line_is_read_up_to_there(tmp_path: Path) -> None:
    with TrialRecorder(AttemptPaths(tmp_path / "a")) as recorder:
        recorder.add_step(STEP)
    with recorder.paths.trajectory.open("a") as stream:
        stream.write(STEP.model_dump_json()[:50])
    assert read_trajectory(recorder.paths) == (STEP,)
    with recorder.paths.trajectory.open("ab") as stream:
        stream.write("é".encode()[:1])
    assert read_trajectory(recorder.paths) == (STEP,)
    with recorder.paths.trajectory.open("a") as stream:
        stream.write("\n")
    with pytest.raises(ConfigError, match="line 2"):
        read_trajectory(recorder.paths)
