"""Guards what a person does with the viewer, in a real browser: look, step, filter, follow a run that goes on.

And that what guests and models write can do nothing in it.
"""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from browser import Page, chromium, find_chromium
from deskfork.core.waiting import Deadline, wait_until
from deskfork.records.claim import claimed
from deskfork.records.paths import RunPaths
from deskfork.records.recorder import TrialRecorder
from deskfork.sandbox.live import claim
from deskfork.sandbox.view import NOVNC
from deskfork.viewer.server import open_viewer
from viewed_runs import make_result, make_run, make_step, record, varied_run

SOON_S = 60.0
COMMAND = [sys.executable, "-c", "from deskfork.cli.main import main; main()"]
DRAWN = "document.querySelectorAll('#screens svg').length === 2"
SHOWN_STEP = "document.querySelector('#body h2')?.innerText"
TASK = """
instruction: Wait for the gate, step by step.
evaluator:
  checks:
    - metric: check_include_exclude
      result: {type: script_output, source: check.sh, target: /home/user/check.sh}
      expected: {type: rule, include: [fine]}
solution: solution.py
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One browser for all; skips where there is none, but not where the tests must be complete."""
    if find_chromium() is None:
        reason = "no Chromium is installed (Debian package: chromium)"
        if os.environ.get("DESKFORK_REQUIRED_PROVIDERS"):
            pytest.fail(reason)
        pytest.skip(reason)
    with chromium(tmp_path_factory.mktemp("browser")) as page:
        page.resize(1280, 800)
        yield page


@pytest.fixture
def page(browser: Page) -> Iterator[Page]:
    """The browser, which must have had nothing to complain of afterwards."""
    yield browser
    found = browser.run("window.violations"), list(browser.complaints), list(browser.dialogs)
    browser.open("about:blank")
    browser.complaints.clear()
    assert found == ([], [], [])


@contextmanager
def viewing(run: RunPaths) -> Iterator[str]:
    """Serve a run; yields the URL."""
    with open_viewer(run.root) as viewer:
        thread = threading.Thread(target=viewer.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield viewer.url
        viewer.shutdown()
        thread.join(SOON_S)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a run with several agents, and texts that mean harm."""
    with viewing(varied_run(tmp_path_factory.mktemp("recorded") / "run")) as url:
        yield url


def rows(count: int) -> str:
    return f"document.querySelectorAll('#rows tr').length === {count}"


def test_a_run_is_looked_through_by_keyboard(page: Page, recorded: str) -> None:
    page.open(recorded, rows(5))
    page.press("j", "j", "Enter")
    page.until(f"{DRAWN} && location.pathname.endsWith('/trial')")
    assert page.text("#task") == "copy-csv"
    assert page.text("#chips").split("\n") == ["completed", "score 1", "strict 0", "agent says done"]
    assert "the columns are in another order" in page.text("#head")
    page.press("j", "ArrowDown", "k")
    page.until(f"{SHOWN_STEP}?.startsWith('Step 2')")
    assert page.run("location.hash") == "#step=2"
    assert "The table is best read directly." in page.text("#body")
    assert "mean   2.0  5.0" in page.text("#body")
    page.press("End")
    page.until(f"{SHOWN_STEP}?.startsWith('Step 7')")
    page.press("j", "j")
    assert page.run("location.hash") == "#step=7"
    page.press("n")
    page.until("document.querySelector('#who')?.innerText.startsWith('computer_13')")
    page.press("p")
    page.until("document.querySelector('#who')?.innerText.startsWith('code+gui')")
    page.press("?")
    page.until("document.querySelector('#keys').open")
    page.press("?", "u")
    page.until(rows(5))


def test_a_link_leads_to_a_step_and_its_marks(page: Page, recorded: str) -> None:
    page.open(recorded, rows(5))
    link = page.run("document.querySelector('#rows tr:nth-child(3) a').href")
    page.open(f"{link}#step=2", DRAWN)
    page.until(f"{SHOWN_STEP}?.startsWith('Step 2')")
    assert page.run("document.querySelectorAll('#screens figure:first-child .spot').length") == 2
    drag = "document.querySelector('#screens .spot.drag line')"
    assert page.run(f"['x1','y1','x2','y2'].map((name) => {drag}.getAttribute(name))") == ["300", "200", "900", "600"]
    assert "dragged at 900, 600" in page.run("document.querySelector('#screens img').alt")
    page.press("z")
    page.until("document.querySelector('#large').open && document.querySelector('#large svg')")
    page.press("j", "Escape")
    page.until(f"!document.querySelector('#large').open && {SHOWN_STEP}?.startsWith('Step 3')")


def test_clicks_are_drawn_where_they_are_on_a_screen_larger_than_the_picture(page: Page, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ["small"], picture_px=640)
    record(run, "t", "small", [make_step(1)], make_result("t", "small"))
    with viewing(run) as url:
        page.open(f"{url}trial?at=t/small/0/attempt-0", DRAWN)
        place = page.run(
            "(({ cx, cy }) => [cx.baseVal.value, cy.baseVal.value])(document.querySelector('.spot circle'))"
        )
        assert place == [600, 400]
        # The mark lies over the same place of the picture, however that is fitted into its frame.
        fitted = page.run("""(() => {
            const image = document.querySelector('#screens img').getBoundingClientRect();
            const mark = document.querySelector('.spot .core').getBoundingClientRect();
            const scale = Math.min(image.width / 1280, image.height / 800);
            const left = image.x + (image.width - 1280 * scale) / 2, top = image.y + (image.height - 800 * scale) / 2;
            return [(mark.x + mark.width / 2 - left) / scale, (mark.y + mark.height / 2 - top) / scale];
        })()""")
        assert fitted == pytest.approx([600, 400], abs=2)


def test_trials_are_filtered_and_the_filter_is_kept(page: Page, recorded: str) -> None:
    page.open(recorded, rows(5))
    page.press("/")
    page.type("another order")
    page.until(rows(1))
    page.run("document.querySelector('#filter').reset()")
    page.until(rows(5))
    page.run("""(() => { const agent = document.querySelector('#filter').elements.agent;
        agent.value = 'oracle'; agent.dispatchEvent(new Event('input', { bubbles: true })); })()""")
    page.until(rows(2))
    assert page.run("location.search") == "?agent=oracle"
    page.run("document.querySelector('[data-sort=score]').click()")
    page.until("document.querySelector('[aria-sort=ascending] [data-sort=score]')")
    page.run("document.querySelector('#rows a').click()")
    page.until("document.querySelector('#place')?.innerText === '1 of 2'")
    page.press("u")
    page.until(rows(2))


def test_text_that_means_harm_is_only_text(page: Page, recorded: str) -> None:
    page.open(recorded, rows(5))
    page.open(page.run("document.querySelector('#rows tr:nth-child(5) a').href"), DRAWN)
    page.run("document.querySelectorAll('details').forEach((found) => { found.open = true; })")
    for number in (1, 2, 3):
        page.until(f"{SHOWN_STEP}?.startsWith('Step {number}')")
        seen = page.text("body")
        assert "<script>window.harmed = 1</script>" in seen
        assert not {"\u202e", "\u2066", "\x1b", "\x07"} & set(seen)
        page.press("j")
    page.run("document.querySelector('.block button').click()")
    page.until("Array.from(document.querySelectorAll('.block pre')).some((pre) => pre.textContent.length > 250000)")
    assert page.run(
        "[typeof window.harmed, document.querySelectorAll('#body img, #body script, #body svg').length]"
    ) == [
        "undefined",
        0,
    ]


@pytest.mark.parametrize("width", [480, 1280])
def test_nothing_sticks_out_of_the_page(page: Page, recorded: str, width: int) -> None:
    page.resize(width, 800, is_dark=width == 480)
    try:
        for path in ("", "trial?at=hostile/" + folder_of(recorded, page)):
            page.open(recorded + path, "document.querySelector('#rows tr, #screens svg')")
            assert page.run("document.documentElement.scrollWidth - innerWidth") <= 0
    finally:
        page.resize(1280, 800)


def folder_of(url: str, page: Page) -> str:
    """Return the rest of the key of the trial with harmful texts."""
    page.open(url, rows(5))
    return str(page.run("document.querySelector('#rows tr:nth-child(5)').dataset.key.split('/').slice(1).join('/')"))


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
    cache = Path("/tmp") / f"deskfork-view-{os.getpid()}"  # a socket's path has little room
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
                box = page.run("(({ x, y, width, height }) => [x + width / 2, y + height / 2])"
                    "(document.querySelector('iframe').getBoundingClientRect())")  # fmt: skip
                for kind in ("mousePressed", "mouseReleased"):
                    page.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
                page.press("x")
                recorder.write_result(make_result("t", "oracle"))
                page.until("document.querySelector('#desktop').hidden")
            assert not {4, 5} & set(heard), "keys or clicks reached the guest"
        # noVNC looks for its version in a file that Debian's package does not have.
        page.complaints[:] = [said for said in page.complaints if not said.endswith("/package.json")]
    finally:
        sandbox.release()
        assert wait_until(lambda: not sandbox.directory.exists(), Deadline.after(SOON_S))
        shutil.rmtree(cache, ignore_errors=True)


@contextmanager
def vnc_server(place: Path) -> Iterator[list[int]]:
    """Serve a small screen by RFB 3.8 on a Unix socket; yields the types of the messages that came."""
    heard: list[int] = []
    lengths = {0: 19, 3: 9, 4: 7, 5: 5}

    def serve(connection: socket.socket) -> None:
        width, height = 64, 40
        with connection, connection.makefile("rb") as stream:
            connection.sendall(b"RFB 003.008\n")
            stream.read(12)
            connection.sendall(b"\x01\x01")
            stream.read(1)
            connection.sendall(b"\x00\x00\x00\x00")
            stream.read(1)
            form = struct.pack(">BBBBHHHBBBxxx", 32, 24, 0, 1, 255, 255, 255, 16, 8, 0)
            connection.sendall(struct.pack(">HH", width, height) + form + struct.pack(">I", 4) + b"fake")
            while kind := stream.read(1):
                heard.append(kind[0])
                if kind[0] == 2:
                    _, count = struct.unpack(">BH", stream.read(3))
                    stream.read(4 * count)
                else:
                    stream.read(lengths.get(kind[0], 0))
                if kind[0] == 3 and heard.count(3) == 1:
                    head = struct.pack(">BxHHHHHi", 0, 1, 0, 0, width, height, 0)
                    connection.sendall(head + b"\x60\xa0\x30\x00" * (width * height))

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield heard
        listener.shutdown(socket.SHUT_RDWR)


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
