"""Guards what the viewer makes of records: of live runs, of killed ones, of damaged ones, and of many."""

import json
import os
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Timer

import pytest

from deskfork.core.errors import ConfigError
from deskfork.records.claim import claimed
from deskfork.records.paths import AttemptPaths
from deskfork.records.recorder import TrialRecorder
from deskfork.viewer.rows import Choice
from deskfork.viewer.run import ViewedRun
from viewed_runs import HOSTILE, make_result, make_run, make_step, record, screen, varied_run

ALL = Choice()
ZEROS = "0" * 24


def key_of(paths: AttemptPaths) -> str:
    return "/".join(paths.root.parts[-4:])


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run directory"):
        ViewedRun(tmp_path)


def test_the_table_has_each_trial_once_by_its_last_attempt(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ["oracle"])
    record(run, "t", "oracle", [make_step(1)], None, attempt=0)
    last = record(run, "t", "oracle", [], make_result("t", "oracle", attempt=1), attempt=1)
    viewed = ViewedRun(run.root)
    (row,) = viewed.table(ALL, 0, 10).rows
    assert (row.key, row.attempts, row.status, row.score) == (key_of(last), 2, "completed", 1.0)
    page = viewed.trial(row.key, ALL)
    assert [len(viewed.trial(key, ALL).steps) for key in page.attempts] == [1, 0]
    assert viewed.trial(page.attempts[0], ALL).row.state == "unfinished"


def test_a_trial_that_is_at_work_grows(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ["code+gui"])
    viewed = ViewedRun(run.root)
    with claimed(run), TrialRecorder(run.attempt("t", "code+gui", 0, 0)) as recorder:
        recorder.log("forked desktop as 0a1b2c3d")
        first = viewed.version()
        (row,) = viewed.table(ALL, 0, 10).rows
        assert (row.agent, row.state, row.steps) == ("code+gui", "running", 0)
        recorder.add_step(make_step(1))
        assert viewed.version() > first
        page = viewed.trial(row.key, ALL)
        assert (page.sandbox, len(page.steps), page.ending) == ("0a1b2c3d", 1, None)
        recorder.add_step(make_step(2))
        assert [step.number for step in viewed.trial(row.key, ALL, known_steps=1).steps] == [2]
        assert viewed.progress(row.key) == (2, False)
        unchanged = viewed.version()
        assert viewed.version() == unchanged
        recorder.write_result(make_result("t", "code+gui", steps=2))
        assert viewed.version() > unchanged
    assert viewed.progress(row.key) == (2, True)
    assert viewed.trial(row.key, ALL).ending is not None


def test_what_a_killed_process_left_is_not_at_work(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ["oracle"])
    left = record(run, "t", "oracle", [make_step(1)], None)
    viewed = ViewedRun(run.root)
    assert [row.state for row in viewed.table(ALL, 0, 10).rows] == ["unfinished"]
    long_ago = time.time() - 600
    for place in (left.trajectory, left.logs / "trial.log", left.root):
        os.utime(place, (long_ago, long_ago))
    with claimed(run):
        assert [row.state for row in viewed.table(ALL, 0, 10).rows] == ["unfinished"]


@pytest.mark.parametrize("cut", [1, 2, 40, 200])
def test_a_torn_last_line_waits_until_it_is_whole(tmp_path: Path, cut: int) -> None:
    run = make_run(tmp_path / "run")
    paths = record(run, "t", "oracle", [make_step(1)], None)
    line = (make_step(2, stdout="größer ☃").model_dump_json() + "\n").encode()
    viewed = ViewedRun(run.root)
    with paths.trajectory.open("ab") as stream:
        # In the middle of a character as well.
        stream.write(line[:-cut])
        stream.flush()
        assert len(viewed.trial(key_of(paths), ALL).steps) == 1
        stream.write(line[-cut:])
    assert len(viewed.trial(key_of(paths), ALL).steps) == 2
    assert "größer ☃" in viewed.step(key_of(paths), 2, is_whole=False).stdout.text


def test_damaged_files_do_not_hide_the_rest(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    paths = record(run, "a", "oracle", [make_step(1), make_step(2)], make_result("a", "oracle"))
    good, bad = paths.trajectory.read_text().splitlines()
    paths.trajectory.write_text(f"{good}\n{bad[:50]}\n{good}\n")
    broken = record(run, "b", "oracle", [make_step(1)], make_result("b", "oracle"))
    broken.result.write_text('{"task": 1}')
    viewed = ViewedRun(run.root)
    assert {row.task: row.state for row in viewed.table(ALL, 0, 10).rows} == {"a": "ended", "b": "unreadable"}
    assert [step.is_failed for step in viewed.trial(key_of(paths), ALL).steps] == [False, True, False]
    with pytest.raises(ConfigError, match="corrupt"):
        viewed.step(key_of(paths), 2, is_whole=False)
    assert len(viewed.trial(key_of(broken), ALL).steps) == 1


@pytest.mark.parametrize("key", ["", "..", "../..", "t/oracle/0/attempt-1", "t/oracle/0/attempt-0/.", "/etc"])
def test_only_attempts_of_the_run_can_be_named(tmp_path: Path, key: str) -> None:
    run = make_run(tmp_path / "run")
    record(run, "t", "oracle", [make_step(1)], make_result("t", "oracle"))
    viewed = ViewedRun(run.root)
    for ask in (lambda: viewed.trial(key, ALL), lambda: viewed.screen(key, "0" * 24 + ".png")):
        with pytest.raises(ConfigError, match="no such trial"):
            ask()


@pytest.mark.parametrize("name", ["", "../result.json", "..", "screens", ZEROS, "A" * 24 + ".png", f"{ZEROS}.png\n"])
def test_only_screens_can_be_had(tmp_path: Path, name: str) -> None:
    run = make_run(tmp_path / "run")
    paths = record(run, "t", "oracle", [make_step(1)], make_result("t", "oracle"))
    with pytest.raises(ConfigError):
        ViewedRun(run.root).screen(key_of(paths), name)


def test_a_screen_of_a_trial_at_work_is_waited_for(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with claimed(run), TrialRecorder(run.attempt("t", "oracle", 0, 0)) as recorder:
        viewed = ViewedRun(run.root)
        place = recorder.paths.screens / f"{ZEROS}.png"
        screen("late").save(tmp_path / "late.png")
        later = Timer(0.3, (tmp_path / "late.png").rename, [place])
        later.start()
        assert viewed.screen(key_of(recorder.paths), place.name).startswith(b"\x89PNG")
        later.join()


def test_links_in_a_foreign_run_lead_nowhere(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    paths = record(run, "t", "oracle", [make_step(1)], make_result("t", "oracle"))
    screen("elsewhere").save(tmp_path / "elsewhere.png")
    linked, text = "0" * 24 + ".png", "1" * 24 + ".png"
    (paths.screens / linked).symlink_to(tmp_path / "elsewhere.png")
    (paths.screens / text).write_text("a secret")
    (run.trials / "way-out").symlink_to(tmp_path)
    viewed = ViewedRun(run.root)
    for name in (linked, text):
        with pytest.raises(ConfigError):
            viewed.screen(key_of(paths), name)
    assert [row.task for row in viewed.table(ALL, 0, 10).rows] == ["t"]


def test_recorded_paths_of_screens_are_names_only(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with TrialRecorder(run.attempt("t", "oracle", 0, 0)) as recorder:
        for number, path in enumerate(["../../../secret", "/etc/passwd", f"screens/{'0' * 24}.png"], 1):
            recorder.add_step(make_step(number, screen=path))
    page = ViewedRun(run.root).trial(key_of(recorder.paths), ALL)
    assert [step.screen for step in page.steps] == [None, None, "0" * 24 + ".png"]


def test_the_screen_at_the_start_is_known_unless_the_run_was_copied(tmp_path: Path) -> None:
    run = varied_run(tmp_path / "run")
    paths = run.attempt("copy-csv", "code+gui", 0, 0)
    first = ViewedRun(run.root).trial(key_of(paths), ALL)
    assert first.first_screen not in (None, *(step.screen for step in first.steps))
    shutil.copytree(run.root, tmp_path / "copy", copy_function=shutil.copyfile)
    later = (datetime.now(UTC) + timedelta(hours=1)).timestamp()
    for place in (tmp_path / "copy").rglob("*.png"):
        os.utime(place, (later, later))
    assert ViewedRun(tmp_path / "copy").trial(key_of(paths), ALL).first_screen is None


def test_texts_are_made_visible_and_long_ones_cut(tmp_path: Path) -> None:
    run = varied_run(tmp_path / "run")
    viewed = ViewedRun(run.root)
    key = key_of(run.attempt("hostile", "code+gui", 0, 0))
    told = json.dumps(
        [viewed.table(ALL, 0, 10).model_dump(mode="json"), viewed.trial(key, ALL).model_dump(mode="json")]
        + [viewed.step(key, number, is_whole=True).model_dump(mode="json") for number in (1, 2, 3)],
        ensure_ascii=False,
    )
    assert HOSTILE[:30] in told
    assert [sign for sign in ("\u202e", "\u2066") if sign in told] == []
    assert not {"\x00", "\x07", "\x1b"} & set(viewed.step(key, 1, is_whole=True).stdout.text)
    body = viewed.step(key, 3, is_whole=False)
    assert len(body.stdout.text) + body.stdout.left_out == len(viewed.step(key, 3, is_whole=True).stdout.text)


def test_a_structured_output_is_shown_by_its_thought(tmp_path: Path) -> None:
    run = varied_run(tmp_path / "run")
    body = ViewedRun(run.root).step(key_of(run.attempt("copy-csv", "code+gui", 0, 0)), 2, is_whole=False)
    assert body.thought.text == "The table is best read directly.\nThen I know its columns."
    assert body.raw is not None
    assert body.raw.text.startswith('{"thought"')


def test_the_size_of_pictures_is_that_of_the_trials_agent(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ["small"], picture_px=640)
    small = record(run, "t", "small", [make_step(1)], make_result("t", "small"))
    other = record(run, "t", "other", [make_step(1)], make_result("t", "other"))
    viewed = ViewedRun(run.root)
    assert [viewed.trial(key_of(paths), ALL).picture_px for paths in (small, other)] == [640, None]


def test_trials_are_chosen_sorted_and_paged(tmp_path: Path) -> None:
    viewed = ViewedRun(varied_run(tmp_path / "run").root)

    def found(**query: str) -> list[tuple[str, str]]:
        return [(row.task, row.agent) for row in viewed.table(Choice.of(query), 0, 100).rows]

    assert found(agent="computer_13") == [("copy-csv", "computer_13")]
    assert found(status="agent_error") == [("hostile", "code+gui")]
    assert found(score="absent") == [("clean-notebook", "oracle"), ("hostile", "code+gui")]
    assert found(score="differs") == [("copy-csv", "code+gui")]
    assert found(text="ANOTHER ORDER") == [("copy-csv", "code+gui")]
    assert found(task="csv", score="one", sort="steps", order="down")[0] == ("copy-csv", "code+gui")
    assert found(sort="score")[0] == ("copy-csv", "computer_13")
    assert found(sort="score")[-1] in found(score="absent")
    page = viewed.table(ALL, 3, 1)
    assert (len(page.rows), page.matching, page.trials, page.offset) == (1, 5, 5, 3)
    with pytest.raises(ConfigError):
        Choice.of({"sort": "__class__"})


def test_a_verdict_that_was_given_anew_is_shown(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    paths = record(run, "t", "oracle", [], make_result("t", "oracle", score=0.0))
    viewed = ViewedRun(run.root)
    assert [row.score for row in viewed.table(ALL, 0, 10).rows] == [0.0]
    paths.result.write_text(make_result("t", "oracle", score=1.0).model_dump_json())
    assert [row.score for row in viewed.table(ALL, 0, 10).rows] == [1.0]
    assert viewed.trial(key_of(paths), ALL).row.score == 1.0


def test_means_are_over_the_scored(tmp_path: Path) -> None:
    sums = {found.agent: found for found in ViewedRun(varied_run(tmp_path / "run").root).table(ALL, 0, 1).agents}
    assert (sums["code+gui"].trials, sums["code+gui"].scored, sums["code+gui"].mean_score) == (2, 1, 1.0)
    assert sums["computer_13"].mean_score == 0.0


def test_neighbours_are_those_of_the_choice(tmp_path: Path) -> None:
    run = varied_run(tmp_path / "run")
    viewed = ViewedRun(run.root)
    oracle = key_of(run.attempt("copy-csv", "oracle", 0, 0))
    among = viewed.trial(oracle, Choice(agent="oracle")).neighbours
    assert (among.previous, among.next, among.position, among.count) == (
        key_of(run.attempt("clean-notebook", "oracle", 0, 0)), None, 2, 2)  # fmt: skip
    outside = viewed.trial(oracle, Choice(agent="computer_13")).neighbours
    assert outside.position is None
