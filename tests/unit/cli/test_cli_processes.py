"""Guards how a run ends when it is told to, killed, or out of disk: records are kept, nothing is left running."""

import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deskfork.core.waiting import Deadline, wait_until

Spawn = Callable[..., Any]
TIMEOUT_S = 60


@pytest.fixture
def slow(source: Path) -> list[str]:
    """A run of two trials whose second step takes a minute."""
    replay = source.parent / "slow.jsonl"
    cells = ["1", "import time; time.sleep(60)"]
    replay.write_text("".join(json.dumps({"code": cell}) + "\n" for cell in cells))
    common = ["--source", str(source), "--provider", "fake", "--out", str(source.parent / "runs"), "--json"]
    return ["run", "start", "--agent", f"replay:{replay}", *common]


def wait_for_steps(source: Path, count: int) -> None:
    """Wait until so many trials have taken their first step."""
    runs = source.parent / "runs"

    def have_begun() -> bool:
        return sum(bool(path.read_text()) for path in runs.glob("*/trials/*/*/*/*/trajectory.jsonl")) >= count

    assert wait_until(have_begun, Deadline.after(TIMEOUT_S))


def programs_in(folder: Path) -> list[str]:
    """Return the command lines of processes that have something to do with `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            parts = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
        except OSError:
            continue
        if any(str(folder).encode() in part for part in parts):
            found.append(parts[0].decode(errors="replace"))
    return found


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("parallel", [1, 2])
def test_a_run_that_is_told_to_end_does_so_in_good_order(
    spawn: Spawn, source: Path, slow: list[str], number: int, code: int, parallel: int
) -> None:
    with spawn([*slow, "--parallel", str(parallel)]) as process:
        wait_for_steps(source, parallel)
        asked_at = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert time.monotonic() - asked_at < 20
    assert process.returncode == code
    report = json.loads(out)
    assert [(trial["status"], trial["score"]) for trial in report["trials"]] == [("cancelled", None)] * parallel
    assert "cancelled" in err
    assert "Traceback" not in err
    for trial in report["trials"]:
        kept = json.loads((Path(report["run_dir"]) / trial["folder"] / "result.json").read_text())
        assert kept["status"] == "cancelled"
    assert not list((source.parent / "tmp").glob("deskfork-fake-*"))
    assert programs_in(source.parent / "tmp") == []


def test_a_check_that_is_told_to_end_says_so_and_shows_what_it_knows(spawn: Spawn, source: Path) -> None:
    for task in ("easier", "easy"):
        (source / task / "solution.py").write_text("# %%\n1\n# %%\nimport time\ntime.sleep(60)\n")
    kept = source.parent / "kept"
    options = ["--source", source, "--provider", "fake", "--record", kept, "--json"]
    with spawn(["task", "check", *options]) as process:

        def has_begun() -> bool:
            return any(path.read_text() for path in kept.glob("*/trials/*/*/*/*/trajectory.jsonl"))

        assert wait_until(has_begun, Deadline.after(TIMEOUT_S))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert "deskfork: cancelled" in err
    assert {(check["task"], check["solvable"], check["is_sound"]) for check in json.loads(out)} == {
        ("easier", None, False),
        ("easy", None, False),
    }


def test_a_run_that_was_killed_is_shown_as_unfinished(
    spawn: Spawn, deskfork: Callable[..., Any], source: Path, slow: list[str]
) -> None:
    with spawn(slow) as process:
        wait_for_steps(source, 1)
        process.kill()
        process.communicate(timeout=TIMEOUT_S)
    (run_dir,) = (source.parent / "runs").iterdir()
    shown = deskfork("run", "show", run_dir, "--json")
    assert shown.code == 0
    assert [(trial["status"], trial["score"]) for trial in shown.json()["trials"]] == [("unfinished", None)]


def limit_files_to(size_bytes: int) -> Callable[[], None]:
    """Make every file of a process fail beyond a size, as a full disk does."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))


def test_a_trial_whose_records_do_not_fit_ends_as_ours_and_spares_the_others(spawn: Spawn, source: Path) -> None:
    # Output of 40 kB does not fit into the trajectory; the other task's little does.
    (source / "easy" / "solution.py").write_text("print('x' * 40_000)\n")
    arguments = ["run", "start", "--source", source, "--agent", "oracle", "--provider", "fake", "--json"]
    arguments += ["--out", source.parent / "runs"]
    with spawn(arguments, preexec_fn=limit_files_to(30_000)) as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 3, err
    report = json.loads(out)
    found = {trial["task"]: trial for trial in report["trials"]}
    assert (found["easier"]["status"], found["easier"]["score"]) == ("completed", 1.0), err
    assert (found["easy"]["status"], found["easy"]["score"], found["easy"]["attempts"]) == ("infra_error", None, 1)
    assert "trajectory.jsonl: could not be written" in found["easy"]["reason"]
    assert "Traceback" not in err


def test_a_run_directory_that_cannot_be_written_ends_in_one_sentence(spawn: Spawn, source: Path) -> None:
    arguments = ["run", "start", "--source", source, "--agent", "null", "--provider", "fake"]
    with spawn([*arguments, "--out", source.parent / "runs"], preexec_fn=limit_files_to(100)) as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 3
    assert out == ""
    assert err.startswith("deskfork: ")
    assert err.count("\n") == 1


def test_a_reader_that_goes_away_is_no_crash(spawn: Spawn, source: Path) -> None:
    with spawn(["task", "list", "--source", source]) as process:
        process.stdout.close()
        assert process.wait(timeout=TIMEOUT_S) in (0, 1)
        assert process.stderr.read() == ""


def test_showing_a_run_does_not_wait_for_the_agents_libraries() -> None:
    code = (
        "import sys, deskfork.cli.run, deskfork.cli.task; print({'smolagents', 'litellm', 'pandas'} & set(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert loaded.stdout == "set()\n"
