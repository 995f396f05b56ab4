"""Guards set-up: steps out of order, files the agent cannot edit, a second JupyterLab, failures put on the agent."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from recording_guest import DebuggingPort, RecordingGuest

from deskfork.core.errors import InfraError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.base import GUEST_DESKTOP, Sandbox
from deskfork.sandbox.fake.provider import FakeProvider
from deskfork.setup.launch import jupyterlab_target
from deskfork.setup.steps import SetupOutcome, run_setup
from deskfork.tasks.schema import BrowserStep, CopyStep, LaunchStep, ScriptStep, SetupStep

LAB = "source /home/user/anaconda3/etc/profile.d/conda.sh && conda activate jupyter && jupyter lab"
TEMPLATE = frozenset({"jupyterlab", "browser"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a.ipynb", "b.csv", "init.sh"):
        (tmp_path / name).write_text(f"echo {name}\n")
        (tmp_path / name).chmod(0o444)
    return tmp_path


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Sandbox]:
    parent = tmp_path / "sandboxes"
    parent.mkdir()
    with FakeProvider(parent=parent).fork("desktop") as sandbox:
        yield sandbox


def copy(name: str, target: str | None = None) -> CopyStep:
    return CopyStep.model_validate({"source": name, "target": target or f"{GUEST_DESKTOP}/{name}"})


def script(*arguments: str) -> ScriptStep:
    return ScriptStep.model_validate({"source": "init.sh", "target": "/home/user/init.sh", "arguments": arguments})


def lab(path: str) -> LaunchStep:
    return LaunchStep(command=("bash", "-c", f"{LAB} {path}"))


def run(
    guest: RecordingGuest | Sandbox,
    root: Path,
    *steps: SetupStep,
    opened: frozenset[str] = frozenset(),
    timeout_s: float = 20,
) -> list[SetupOutcome]:
    return run_setup(steps, guest, root=root, opened=opened, deadline=Deadline.after(timeout_s), task="t1")


def test_all_files_up_to_a_script_travel_together_and_are_writable(root: Path) -> None:
    guest = RecordingGuest()
    outcomes = run(guest, root, copy("a.ipynb"), copy("b.csv", "/home/user/Downloads/b.csv"), script("x y"))
    assert len(outcomes) == 3
    assert [call[0] for call in guest.calls] == ["put", "/bin/bash"]
    assert guest.files == {
        "/home/user/Desktop/a.ipynb": (b"echo a.ipynb\n", 0o644),
        "/home/user/Downloads/b.csv": (b"echo b.csv\n", 0o644),
        "/home/user/init.sh": (b"echo init.sh\n", 0o644),
    }
    assert guest.calls[1][-3:] == ["script", "/home/user/init.sh", "x y"]


def test_a_file_that_follows_a_script_is_not_there_before(root: Path) -> None:
    guest = RecordingGuest()
    run(guest, root, script(), copy("a.ipynb"), copy("b.csv"), copy("a.ipynb", "/home/user/c"))
    assert [call[0] for call in guest.calls] == ["put", "/bin/bash", "put"]


def test_scripts_really_run_and_are_removed(root: Path, fake: Sandbox) -> None:
    (root / "init.sh").chmod(0o644)
    (root / "init.sh").write_text('cp Desktop/b.csv "$1"\n')
    run(fake, root, copy("b.csv"), script("Desktop/copied.csv"))
    listed = fake.exec(["find", ".", "-name", "*.csv", "-o", "-name", "init.sh"], timeout_s=10).stdout.split()
    assert sorted(listed) == ["./Desktop/b.csv", "./Desktop/copied.csv"]


def test_a_failing_script_names_task_step_and_what_came_back(root: Path, fake: Sandbox) -> None:
    (root / "init.sh").chmod(0o644)
    (root / "init.sh").write_text("echo no room >&2\nexit 4\n")
    with pytest.raises(InfraError, match=r"t1, step 1 \(run script init.sh\).*exit code 4.*no room"):
        run(fake, root, script())


def test_a_hanging_script_ends_with_the_deadline(root: Path, fake: Sandbox) -> None:
    (root / "init.sh").chmod(0o644)
    (root / "init.sh").write_text("sleep 60\n")
    with pytest.raises(InfraError, match="did not end within 1 s"):
        run(fake, root, script(), timeout_s=1)


def test_a_file_that_has_vanished_is_our_failure(root: Path) -> None:
    with pytest.raises(InfraError, match=r"lost\.csv"):
        run(RecordingGuest(), root, copy("lost.csv"))


def test_the_templates_browser_only_gets_further_tabs(root: Path) -> None:
    port = DebuggingPort(tabs=[("lab", "http://localhost:8888/lab")])
    guest = RecordingGuest(rules={"/json/": port})
    urls = ("https://www.bing.com/", "http://x/?a=b c&d=%20#e")
    [outcome] = run(guest, root, BrowserStep(urls=urls), opened=TEMPLATE)
    assert outcome.is_recognised
    assert [url for _, url in port.tabs] == [urls[1], urls[0], "http://localhost:8888/lab"]
    assert len(guest.calls) == 1


def test_without_one_the_browser_is_started_and_its_first_page_replaced(root: Path) -> None:
    port = DebuggingPort(tabs=[("first", "chrome://newtab/")])
    guest = RecordingGuest(rules={"/json/": port})
    [outcome] = run(guest, root, BrowserStep(urls=("http://x/",)))
    assert not outcome.is_recognised
    lines = guest.lines()
    assert "google-chrome --remote-debugging-port=1337" in lines[0]
    assert "socat tcp-listen:9222,fork" in lines[1]
    assert port.closed == ["first"]


def test_the_templates_jupyterlab_shows_the_file_in_one_page(root: Path) -> None:
    port = DebuggingPort(tabs=[("bing", "https://www.bing.com/"), ("lab", "http://localhost:8888/lab")])
    guest = RecordingGuest(rules={"/json/": port})
    [outcome] = run(guest, root, lab("/home/user/Desktop/logistic_regression.ipynb"), opened=TEMPLATE)
    assert outcome.is_recognised
    assert port.closed == ["lab"]
    assert port.tabs[0][1] == "http://localhost:8888/lab/tree/logistic_regression.ipynb"
    assert not any("setsid" in line for line in guest.lines())


def test_the_browsers_last_page_is_never_closed_first(root: Path) -> None:
    port = DebuggingPort(tabs=[("lab", "http://localhost:8888/lab")])
    guest = RecordingGuest(rules={"/json/": port})
    run(guest, root, lab("/home/user/Desktop/a.ipynb"), opened=TEMPLATE)
    actions = [line.partition("/json/")[2].partition("?")[0] for line in guest.lines()]
    assert actions[:3] == ["list", "new", "close/lab"]


def test_the_templates_jupyterlab_on_the_desktop_is_brought_to_the_front(root: Path) -> None:
    port = DebuggingPort(tabs=[("bing", "https://www.bing.com/"), ("lab", "http://localhost:8888/lab/tree")])
    run(RecordingGuest(rules={"/json/": port}), root, lab("/home/user/Desktop"), opened=TEMPLATE)
    assert (port.activated, port.closed) == (["lab"], [])


def test_a_page_that_never_comes_is_our_failure(root: Path) -> None:
    port = DebuggingPort(tabs=[("bing", "https://www.bing.com/")])
    guest = RecordingGuest(rules={"/json/list": lambda _: "[]", "/json/": port})
    with pytest.raises(InfraError, match=r"step 1 \(launch .*no tab at"):
        run(guest, root, lab("/home/user/Desktop/a.ipynb"), opened=TEMPLATE, timeout_s=1)


@pytest.mark.parametrize("answer", ["", "{}", "[1]", '[{"type": "page"}]', "[" * 100_000])
def test_a_browser_that_answers_nonsense_is_our_failure(root: Path, answer: str) -> None:
    guest = RecordingGuest(rules={"/json/list": lambda _: answer})
    if answer == "{}":
        guest.rules["/json/list"] = lambda _: '{"type": "page"}'
    with pytest.raises(InfraError, match="listed no pages"):
        run(guest, root, lab("/home/user/Desktop"), opened=TEMPLATE)


def test_a_browser_that_is_gone_is_our_failure(root: Path) -> None:
    guest = RecordingGuest(rules={"/json/": lambda _: 7}, stderr="curl: (7) Failed to connect")
    with pytest.raises(InfraError, match="exit code 7, saying: curl"):
        run(guest, root, BrowserStep(urls=("http://x/",)), opened=TEMPLATE)


@pytest.mark.parametrize(
    ("path", "opened"),
    [("/home/user", TEMPLATE), ("/home/user/Desktop/../x", TEMPLATE), ("/home/user/Desktop", frozenset())],
)
def test_a_jupyterlab_elsewhere_is_started_and_waited_for(root: Path, path: str, opened: frozenset[str]) -> None:
    counts = iter(["1\n", "1\n", "2\n"])
    guest = RecordingGuest(rules={"jpserver": lambda _: next(counts)})
    [outcome] = run(guest, root, lab(path), opened=opened)
    assert not outcome.is_recognised
    assert [call[3:] for call in guest.calls if "setsid" in call[2]] == [["launch", "bash", "-c", f"{LAB} {path}"]]
    assert next(counts, None) is None


def test_a_launched_program_is_left_running(root: Path, fake: Sandbox) -> None:
    run(fake, root, LaunchStep(command=("sh", "-c", "echo started > mark; exec sleep 30")))
    found = fake.exec(["sh", "-c", "until [ -s mark ]; do sleep 0.05; done; cat mark"], timeout_s=10)
    assert found.stdout == "started\n"


def test_a_program_that_does_not_exist_is_our_failure(root: Path, fake: Sandbox) -> None:
    with pytest.raises(InfraError, match="there is no program no-such-program"):
        run(fake, root, LaunchStep(command=("no-such-program",)))


def test_a_launch_waits_for_its_window(root: Path) -> None:
    guest = RecordingGuest(titles=["*packing-list.txt - Mousepad"])
    run(guest, root, LaunchStep(command=("mousepad",), window="packing-list"))
    with pytest.raises(InfraError, match="no window titled 'other'"):
        run(guest, root, LaunchStep(command=("mousepad",), window="other"), timeout_s=0.5)


def test_no_step_starts_after_the_deadline(root: Path) -> None:
    guest = RecordingGuest()
    with pytest.raises(InfraError, match="no time was left"):
        run(guest, root, LaunchStep(command=("true",)), timeout_s=0)
    assert guest.calls == []


@pytest.mark.parametrize(
    ("command", "target"),
    [
        (("bash", "-c", f"{LAB} /home/user/Desktop"), "/home/user/Desktop"),
        (("jupyter", "lab", "/x"), "/x"),
        (("bash", "-c", f"{LAB} --no-browser"), None),
        (("bash", "-c", f"{LAB} /x && rm -rf /x"), None),
        (("bash", "-c", f"{LAB} '/x"), None),
        (("bash", "-c", LAB.removesuffix(" && jupyter lab")), None),
        (("gnome-terminal",), None),
    ],
)
def test_only_a_plain_start_of_jupyterlab_is_taken_for_one(command: tuple[str, ...], target: str | None) -> None:
    found = jupyterlab_target(command)
    assert (None if found is None else str(found)) == target
