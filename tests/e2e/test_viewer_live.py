"""Guards the viewer of a run that goes on: it follows by itself and shows the live desktop; and that of large runs."""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from browser import Page
from deskfork.core.waiting import Deadline, wait_until
from deskfork.records.claim import claimed
from deskfork.records.recorder import TrialRecorder
from deskfork.sandbox.live import claim
from deskfork.sandbox.view import NOVNC
from viewed_runs import make_result, make_run, make_step
from viewing import SHOWN_STEP, SOON_S, rows, viewing, vnc_server

COMMAND = [sys.executable, "-c", "from deskfork.cli.main import main; main()"]
TASK = """
instruction: Wait for the gate, step by step.
evaluator:
  checks:
    - metric: check_include_exclude
      result: {type: script_output, source: check.sh, target: /home/user/check.sh}
      expected: {type: rule, include: [fine]}
solution: solution.py
"""


def test_a_run_on_the_fake_provider_is_followed_while_it_goes_on(page: Page, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    write_gated_tasks(tmp_path / "tasks", gate)
    arguments = ["--provider", "fake", "--agent", "oracle", "--agent", "null", "--source", tmp_path / "tasks"]
    with command("run", "start", *arguments, "--out", tmp_path / "runs") as started:
        at_work = lambda: next((tmp_path / "runs").glob("*/trials/*/oracle/0/attempt-0/trajectory.jsonl"), None)  # noqa: E731
        assert wait_until(at_work, Deadline.after(SOON_S)), started.communicate(timeout=SOON_S)
        (run_dir,) = (tmp_path / "runs").iterdir()
        with command("run", "view", run_dir, "--json") as viewer:
            assert viewer.stdout is not None
            url = json.loads("".join(iter(viewer.stdout.readline, "}\n")) + "}")["url"]
            follow_a_live_run(page, url, gate)
            started.wait(SOON_S)
            page.open(url, rows(4))
            page.until("document.querySelector('#live').hidden")
            viewer.send_signal(signal.SIGINT)
            assert viewer.wait(SOON_S) == 0


def follow_a_live_run(page: Page, url: str, gate: Path) -> None:
    """Watch the first trial wait at its gate, let it through, and see its end; then the next one's row."""
    page.open(url, "document.querySelector('.chip.running')")
    assert not page.run("document.querySelector('#live').hidden")
    page.run("document.querySelector('.chip.running').closest('tr').querySelector('a').click()")
    page.until("document.querySelector('#steps li') && !document.querySelector('#follow').hidden")
    page.until("document.querySelectorAll('#steps li').length === 1")
    assert page.run("document.querySelector('#follow').getAttribute('aria-pressed')") == "true"
    page.run("window.isTheSamePage = true")
    (gate / "1").touch()
    page.until(f"{SHOWN_STEP}?.startsWith('Step 2')")
    page.press("k")
    page.until(f"{SHOWN_STEP}?.startsWith('Step 1')")
    (gate / "2").touch()
    page.until("document.querySelectorAll('#steps li').length === 3")
    # Who has gone back to read is not carried along.
    assert page.run(SHOWN_STEP).startswith("Step 1")
    (gate / "3").touch()
    page.until("document.querySelector('#chips').innerText.includes('score 1')")
    assert page.run("window.isTheSamePage && document.querySelector('#live').hidden")
    assert page.run("document.querySelectorAll('#steps li').length") == 4


def write_gated_tasks(root: Path, gate: Path) -> None:
    """Write two tasks whose solutions wait, before each step but the first, until the test lets them go on."""
    gate.mkdir()
    wait = "import time, pathlib\nwhile not pathlib.Path({gate!r}).exists(): time.sleep(0.05)\n"
    cells = ["print('begun')\n", *(wait.format(gate=str(gate / str(number))) for number in (1, 2))]
    cells.append(wait.format(gate=str(gate / "3")) + "final_answer('done')\n")
    for name in ("first", "second"):
        folder = root / name
        folder.mkdir(parents=True)
        (folder / "task.yaml").write_text(TASK)
        (folder / "check.sh").write_text("echo fine\n")
        (folder / "solution.py").write_text("".join(f"# %%\n{cell}" for cell in cells))


@contextmanager
def command(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Run the command as a process of its own, and end it."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, *map(str, arguments)], text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def test_the_live_desktop_is_shown_and_takes_no_clicks(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (NOVNC / "vnc.html").is_file():
        pytest.skip("noVNC is not installed (Debian package: novnc)")
    cache = Path(tempfile.mkdtemp(prefix="deskfork-"))  # a socket's path has little room
    monkeypatch.setenv("DESKFORK_CACHE", str(cache))
    run = make_run(tmp_path / "run", ["oracle"])
    sandbox = claim(cache, provider="qemu", kind="sandbox")
    try:
        with vnc_server(sandbox.directory / "vnc.sock") as heard, claimed(run), viewing(run) as url:
            with TrialRecorder(run.attempt("t", "oracle", 0, 0)) as recorder:
                recorder.log(f"forked desktop as {sandbox.record.id}")
                recorder.add_step(make_step(1))
                page.open(f"{url}trial?at=t/oracle/0/attempt-0", "document.querySelector('#desktop iframe')")
                assert wait_until(lambda: 3 in heard, Deadline.after(SOON_S)), "nobody asked for the screen"
                box = page.run("(({ x, y, width, height, right }) => [x + width / 2, y + height / 2, right, y])"
                    "(document.querySelector('iframe').getBoundingClientRect())")  # fmt: skip
                # In the middle, and on noVNC's button for Ctrl+Alt+Del.
                for x, y in ((box[0], box[1]), (box[2] - 50, box[3] + 14)):
                    for kind in ("mousePressed", "mouseReleased"):
                        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
                page.press("x")
                recorder.write_result(make_result("t", "oracle"))
                page.until("document.querySelector('#desktop').hidden")
            assert not {4, 5} & set(heard), "keys or clicks reached the guest"
    finally:
        sandbox.release()
        assert wait_until(lambda: not sandbox.directory.exists(), Deadline.after(SOON_S))
        shutil.rmtree(cache, ignore_errors=True)


def test_ten_thousand_trials_and_five_hundred_steps_are_no_burden(page: Page, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [f"agent-{n}" for n in range(10)])
    text = make_result("t", "a").model_dump(mode="json")
    for number in range(10_000):
        task, agent, repeat = f"task-{number // 100:03}", f"agent-{number % 10}", number // 10 % 10
        folder = run.attempt(task, agent, repeat, 0).root
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps({**text, "task": task, "agent": agent, "repeat": repeat}))
    with TrialRecorder(run.attempt("zz", "agent-0", 0, 0)) as recorder:
        for number in range(1, 501):
            recorder.add_step(make_step(number, stdout="x" * 20_000))
        recorder.write_result(make_result("zz", "agent-0", steps=500))
    with viewing(run) as url:
        page.open(url, rows(100))
        assert "10,001 trials" in page.text("#state")
        page.press("n")
        page.until("document.querySelector('#place').innerText.startsWith('101 to 200')")
        asked = """(async () => {
            const before = performance.now();
            await fetch('api/trials?text=task-05&sort=score');
            return performance.now() - before;
        })()"""
        assert min(page.run(asked) for _ in range(5)) < 1000
        page.open(
            f"{url}trial?at=zz/agent-0/0/attempt-0#step=500", "document.querySelectorAll('#steps li').length === 500"
        )
        page.until(f"{SHOWN_STEP}?.startsWith('Step 500')")
        page.press("k")
        page.until(f"{SHOWN_STEP}?.startsWith('Step 499')")
    page.complaints.clear()  # screens of these steps were not kept
