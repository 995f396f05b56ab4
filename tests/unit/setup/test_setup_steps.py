"""Guards set-up: steps out of order, files the agent cannot edit, a second JupyterLab, failures put on the agent."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from recording_guest import DebuggingPort, RecordingGuest

from deskfork.core.errors import InfraError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.base import GUEST_DESKTOP, Sandbox
from deskfork.sandbox.fake.provider import FakeProvider
from deskfork.setup.jupyterlab import jupyterlab_target
from deskfork.setup.steps import SetupOutcome, run_post_setup, run_setup
from deskfork.tasks.steps import (
    ActivateWindowStep,
    BrowserStep,
    CopyStep,
    ExecuteStep,
    LaunchStep,
    ScriptStep,
    SetupStep,
    SleepStep,
    SupplyStep,
)

LAB = "source /home/user/anaconda3/etc/profile.d/conda.sh && conda activate jupyter && jupyter lab"
BING = "https://www.bing.com/"
TEMPLATE = frozenset({"jupyterlab", "browser", BING})
SHOW = "/opt/deskfork/bin/show-in-jupyterlab"


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


def test_a_tab_that_the_template_has_is_not_opened_again(root: Path) -> None:
    port = DebuggingPort(tabs=[("lab", "http://localhost:8888/lab"), ("bing", BING)])
    guest = RecordingGuest(rules={"/json/": port})
    url = "http://x/?a=b c&d=%20#e"
    [outcome, _] = run(guest, root, BrowserStep(urls=(BING, url)), lab("/home/user/Desktop"), opened=TEMPLATE)
    assert outcome.is_recognised
    assert [found for _, found in port.tabs] == [url, "http://localhost:8888/lab", BING]


def test_what_is_set_up_over_a_template_takes_one_transfer_and_one_session(root: Path) -> None:
    guest = RecordingGuest()
    steps = (copy("a.ipynb"), BrowserStep(urls=(BING,)), script(), lab("/home/user/Desktop/a.ipynb"))
    outcomes = run(guest, root, *steps, opened=TEMPLATE)
    assert [outcome.is_recognised for outcome in outcomes] == [False, True, False, True]
    assert [call[0] for call in guest.calls] == ["put", "/bin/bash", SHOW]
    assert guest.calls[-1][1] == "a.ipynb"
    assert guest.sessions == 1


def test_a_task_that_wants_a_browser_alone_gets_no_jupyterlab(root: Path) -> None:
    guest = RecordingGuest()
    run(guest, root, BrowserStep(urls=(BING,)), opened=TEMPLATE)
    [line] = guest.lines()
    assert "/json/close/" in line
    assert "kill -KILL" in line


def test_without_one_the_browser_is_started_and_its_first_page_replaced(root: Path) -> None:
    port = DebuggingPort(tabs=[("first", "chrome://newtab/")])
    guest = RecordingGuest(rules={"/json/": port})
    [outcome] = run(guest, root, BrowserStep(urls=("http://x/",)))
    assert not outcome.is_recognised
    lines = guest.lines()
    assert "google-chrome --remote-debugging-port=1337" in lines[0]
    assert "socat tcp-listen:9222,fork" in lines[1]
    assert port.closed == ["first"]


def test_the_templates_jupyterlab_on_the_desktop_is_brought_up_to_date(root: Path) -> None:
    guest = RecordingGuest()
    [outcome] = run(guest, root, lab("/home/user/Desktop"), opened=TEMPLATE)
    assert outcome.is_recognised
    assert guest.calls[0][:2] == [SHOW, ""]


def test_a_page_that_never_comes_is_our_failure(root: Path) -> None:
    guest = RecordingGuest(rules={SHOW: lambda _: 1}, stderr="show-in-jupyterlab: no page")
    with pytest.raises(InfraError, match=r"step 2 \(launch .*exit code 1, saying: .*no page"):
        run(guest, root, copy("a.ipynb"), lab("/home/user/Desktop/a.ipynb"), opened=TEMPLATE)


def test_a_jupyterlab_of_another_folder_takes_the_place_of_the_templates(root: Path) -> None:
    guest = RecordingGuest()
    [outcome] = run(guest, root, lab("/home/user/Downloads/a.ipynb"), opened=TEMPLATE)
    assert not outcome.is_recognised
    ended, shown = guest.calls
    assert "kill -KILL" in ended[2]
    assert ended[4:] == ["bash", "-c", f"{LAB} /home/user/Downloads/a.ipynb"]
    assert shown[4] == "/home/user/Downloads/a.ipynb"
    assert "load" in shown[2]


@pytest.mark.parametrize("answer", ["", "{}", "[1]", '[{"type": "page"}]', "[" * 100_000])
def test_a_browser_that_answers_nonsense_is_our_failure(root: Path, answer: str) -> None:
    guest = RecordingGuest(rules={"/json/list": lambda _: answer})
    if answer == "{}":
        guest.rules["/json/list"] = lambda _: '{"type": "page"}'
    with pytest.raises(InfraError, match="listed no pages"):
        run(guest, root, BrowserStep())


def test_a_browser_that_is_gone_is_our_failure(root: Path) -> None:
    guest = RecordingGuest(rules={"/json/": lambda _: 7}, stderr="curl: (7) Failed to connect")
    with pytest.raises(InfraError, match="exit code 7, saying: curl"):
        run(guest, root, BrowserStep(urls=("http://x/",)), opened=TEMPLATE)


@pytest.mark.parametrize(
    ("path", "opened"),
    [("/home/user", frozenset({"browser"})), ("/home/user/Desktop", frozenset())],
)
def test_a_jupyterlab_without_the_templates_is_started_and_waited_for(
    root: Path, path: str, opened: frozenset[str]
) -> None:
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


def test_what_a_task_is_supplied_with_is_there_before_what_uses_it(root: Path) -> None:
    guest = RecordingGuest()
    page = SupplyStep.model_validate({"source": root / "b.csv", "target": "/var/lib/x/b", "command": ["sudo", "serve"]})
    run(guest, root, page, script())
    assert guest.files["/var/lib/x/b"][0] == b"echo b.csv\n"
    assert [call[0] for call in guest.calls] == ["put", "sudo", "/bin/bash"]
    guest.rules["serve"] = lambda _: 3
    with pytest.raises(InfraError, match=r"step 1 \(supply /var/lib/x/b\): sudo ended with exit code 3"):
        run(guest, root, page, script())


def test_two_scripts_of_one_name_each_find_their_own_text(root: Path, fake: Sandbox) -> None:
    (root / "init.sh").chmod(0o644)
    (root / "init.sh").write_text('echo "$1" >>said\n')
    run(fake, root, script("one"), script("two"))
    assert fake.exec(["cat", "said"], timeout_s=10).stdout == "one\ntwo\n"


def test_each_step_is_told_its_own_time(root: Path, fake: Sandbox) -> None:
    short, long = run(fake, root, SleepStep(duration_s=0.01), SleepStep(duration_s=0.5))
    assert short.duration_s < 0.5 <= long.duration_s < 5


def test_what_a_program_exits_with_is_not_looked_at(root: Path, fake: Sandbox) -> None:
    run(fake, root, ExecuteStep(command=("sh", "-c", "exit 3")), ExecuteStep(command=("touch", "reached")))
    assert fake.exec(["test", "-e", "reached"], timeout_s=10).exit_code == 0


def test_a_program_that_overruns_is_ended_and_the_next_step_done(root: Path, fake: Sandbox) -> None:
    run(fake, root, ExecuteStep(command=("sleep", "60"), timeout_s=0.2), ExecuteStep(command=("touch", "reached")))
    assert fake.exec(["test", "-e", "reached"], timeout_s=10).exit_code == 0


@pytest.mark.parametrize(("is_exact", "flag"), [(False, "-a"), (True, "-Fa")])
def test_a_window_that_is_not_there_fails_nothing(root: Path, is_exact: bool, flag: str) -> None:
    guest = RecordingGuest(rules={"wmctrl": lambda _: 1})
    run(guest, root, ActivateWindowStep(title="JupyterLab", is_exact=is_exact))
    assert guest.calls == [["wmctrl", flag, "JupyterLab"]]


def test_after_the_agent_a_failing_script_is_not_our_failure(root: Path) -> None:
    guest = RecordingGuest(rules={"init.sh": lambda _: 1, SHOW: lambda _: 1})
    keys = ExecuteStep(command=("python", "-c", "import pyautogui"))
    run_post_setup((script(), keys), guest, root=root, deadline=Deadline.after(20), task="t1")
    script_call, keys_call, saved_call = (call for call in guest.calls if call[0] != "put")
    assert "init.sh" in " ".join(script_call)
    assert keys_call[-2:] == ["-c", "import pyautogui"]
    assert saved_call[0] == SHOW
    assert saved_call[-1] == "saved"


def test_after_the_agent_a_guest_that_is_gone_is_our_failure(root: Path) -> None:
    (root / "init.sh").unlink()
    with pytest.raises(InfraError, match=r"step 1 \(run script init.sh\)"):
        run_post_setup((script(),), RecordingGuest(), root=root, deadline=Deadline.after(20), task="t1")


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
