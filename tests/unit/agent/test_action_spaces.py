"""Guards: each action space does what it allows, refuses what it forbids and tells the agent so, and records both."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from deskfork.agent.catalogue import catalogue
from deskfork.agent.config import parse_agent
from deskfork.agent.limits import Limits
from deskfork.agent.prelude import is_our_own
from deskfork.core.errors import SandboxError
from deskfork.core.types import CellError, CellResult

Run = Callable[..., Any]
SPACES = ("code+gui", "code", "pyautogui", "computer_13", "computer", "computer+tools")


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def fence(text: str, kind: str = "") -> str:
    return f"I see.\n```{kind}\n{text}\n```"


def cell(text: str) -> str:
    return f"I think.\n<code>\n{text}\n</code>"


# What each space allows, and what it then runs in the guest; what it forbids; how it ends; what its last line is.
ALLOWED: dict[str, tuple[object, str]] = {
    "code+gui": (cell("import pyautogui\npyautogui.click(3, 4)"), "pyautogui.click(3, 4)"),
    "code": (cell("x = 3"), "x = 3"),
    "pyautogui": (fence("pyautogui.click(3, 4)", "python"), "pyautogui.click(3, 4)"),
    "computer_13": (fence('{"action_type": "CLICK", "x": 3, "y": 4}', "json"), "x=3, y=4"),
    "computer": (call("left_click", x=3, y=4), "x=3, y=4"),
    "computer+tools": (call("view", path="a.txt"), "'a.txt'"),
}
FORBIDDEN: dict[str, tuple[object, str]] = {
    "code": (cell("import pyautogui\npyautogui.click(3, 4)"), "pyautogui"),
    "pyautogui": (fence("import os\nos.remove('/etc/passwd')", "python"), "os"),
    "computer_13": (fence('{"action_type": "RUN", "command": "ls"}', "json"), "RUN"),
    "computer": (call("bash", command="ls"), "bash"),
    "computer+tools": (call("view", path=7), "path"),
}
ENDS: dict[str, object] = {
    "pyautogui": fence("DONE"),
    "computer_13": fence("DONE"),
    "computer": call("final_answer", answer="it is done"),
    "computer+tools": call("final_answer", answer="it is done"),
}


@pytest.fixture
def play(run: Run, tmp_path: Path) -> Callable[..., Any]:
    """Run a script of raw replies in an action space."""

    def play_it(space: str, replies: list[object], guest: Any, *, observe: object = (), **more: Any) -> Any:
        script, agent = tmp_path / "script.jsonl", tmp_path / "agent.yaml"
        script.write_text("\n".join(map(json.dumps, replies)))
        config = {"name": "scripted", "actions": space, "observe": list(observe), **more.pop("config", {})}  # type: ignore[call-overload]
        agent.write_text(yaml.safe_dump(config))
        return run(parse_agent(str(agent), f"scripted:{script}"), guest, **more)

    return play_it


def sent(guest: Any) -> str:
    return "\n".join(code for code, _ in guest.cells if not is_our_own(code))


def answered_with_versions(code: str) -> CellResult:
    return CellResult("{}" if "_deskfork_versions" in code else "", "", (), 0.0)


@pytest.mark.parametrize("space", SPACES)
def test_what_a_space_allows_is_done_and_recorded(play: Run, screen_guest: Any, space: str) -> None:
    reply, code = ALLOWED[space]
    guest = screen_guest(answered_with_versions)
    ran = play(space, [reply], guest)
    assert code in sent(guest)
    [record] = ran.records
    assert (record.error, record.refused) == (None, None)
    assert record.action in ("gui", "code", "file")
    assert sum(record.lines.values()) > 0
    assert record.code


@pytest.mark.parametrize("space", sorted(FORBIDDEN))
def test_what_a_space_forbids_is_refused_and_the_agent_is_told_why(play: Run, screen_guest: Any, space: str) -> None:
    reply, named = FORBIDDEN[space]
    guest = screen_guest(answered_with_versions)
    ran = play(space, [reply, ALLOWED[space][0]], guest)
    first, second = ran.records
    assert named in first.refused
    assert "Refused" in first.error
    assert (first.action, first.lines) == ("none", {})
    assert (second.refused, second.error) == (None, None)
    told = [message["text"] for message in ran.outcome.messages if "Refused" in message["text"]]
    assert named in told[0]
    assert sent(guest).count("\n".join(str(ALLOWED[space][1]).split("\n")[:1])) == 1


@pytest.mark.parametrize("space", sorted(ENDS))
def test_an_agent_ends_itself_and_its_report_is_recorded(play: Run, screen_guest: Any, space: str) -> None:
    ran = play(space, [ENDS[space], ALLOWED[space][0]], screen_guest(answered_with_versions))
    assert (ran.outcome.status, ran.outcome.reason) == ("completed", "final answer")
    assert (ran.outcome.self_report, ran.outcome.answer) == ("done", ran.outcome.answer)
    assert ran.outcome.answer in ("DONE", "it is done")
    assert [record.is_final for record in ran.records] == [True]


@pytest.mark.parametrize("space", ["pyautogui", "computer_13"])
def test_fail_is_reported_as_failure(play: Run, screen_guest: Any, space: str) -> None:
    ran = play(space, [fence("FAIL")], screen_guest())
    assert (ran.outcome.self_report, ran.outcome.answer, ran.outcome.status) == ("failed", "FAIL", "completed")


@pytest.mark.parametrize("space", SPACES)
def test_an_agent_that_runs_out_reports_nothing(play: Run, screen_guest: Any, space: str) -> None:
    ran = play(space, [ALLOWED[space][0]] * 3, screen_guest(answered_with_versions), limits=Limits(steps=2))
    assert (ran.outcome.status, ran.outcome.self_report, ran.outcome.steps) == ("limit", None, 2)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(
    "nonsense", ["", "No.", "```", "<code>", "{", "```json\n[[\n```", "```python\n)(\n```", "\u202e\x1b[2J"]
)
def test_nonsense_is_a_step_without_an_act(play: Run, screen_guest: Any, space: str, nonsense: str) -> None:
    guest = screen_guest(lambda code: CellResult("{}", "", (), 0.0, None))
    ran = play(space, [nonsense, ENDS.get(space, ALLOWED[space][0])], guest)
    assert len(ran.records) == 2
    assert ran.records[0].error or ran.records[0].code == ")("
    assert ran.outcome.status == "completed"


@pytest.mark.parametrize("space", ["pyautogui", "computer_13", "computer"])
def test_what_fails_in_the_guest_is_told_and_ends_nothing(play: Run, screen_guest: Any, space: str) -> None:
    def answer(code: str) -> CellResult:
        failed = CellError("DisplayConnectionError", "gone", "Traceback\nDisplayConnectionError: gone")
        return CellResult("", "", (), 0.0, None if is_our_own(code) else failed)

    ran = play(space, [ALLOWED[space][0], ENDS[space]], screen_guest(answer))
    assert "DisplayConnectionError" in ran.records[0].error
    assert (ran.records[0].refused, ran.outcome.self_report) == (None, "done")


@pytest.mark.parametrize("space", ["pyautogui", "computer_13", "computer"])
def test_our_own_failure_ends_the_run(play: Run, screen_guest: Any, space: str) -> None:
    def answer(code: str) -> CellResult:
        if is_our_own(code):
            return CellResult("", "", (), 0.0)
        raise SandboxError("gone")

    ran = play(space, [ALLOWED[space][0]], screen_guest(answer), raises=SandboxError)
    assert ran.records[0].error == "SandboxError: gone"


def test_a_reply_is_refused_as_a_whole(play: Run, screen_guest: Any) -> None:
    guest = screen_guest()
    acts = '[{"action_type": "CLICK", "x": 3, "y": 4}, {"action_type": "CLICK", "x": 99999, "y": 4}]'
    ran = play("computer_13", [fence(acts, "json")], guest)
    assert "off the screen" in ran.records[0].refused
    assert sent(guest) == ""


def test_tool_calls_are_done_in_order_until_one_is_refused(play: Run, screen_guest: Any) -> None:
    guest = screen_guest()
    calls = [
        {"name": "left_click", "arguments": {"x": 1, "y": 2}},
        {"name": "type", "arguments": {"text": "first"}},
        {"name": "type", "arguments": {"words": "second"}},
        {"name": "left_click", "arguments": {"x": 3, "y": 4}},
    ]
    ran = play("computer", [{"tool_calls": calls}], guest)
    assert "words" in ran.records[0].refused
    assert sent(guest).index("x=1, y=2") < sent(guest).index("first")
    assert "x=3, y=4" not in sent(guest)
    assert [(made.name, made.arguments) for made in ran.records[0].tool_calls][2] == ("type", {"words": "second"})


def test_no_name_of_a_block_lives_on(play: Run, kernel_guest: Any) -> None:
    kernel_guest.run_cell(
        "import sys, types\nsys.modules['pyautogui'] = types.SimpleNamespace(FAILSAFE=True)", timeout_s=20
    )
    replies = [fence("kept = 7\nprint(kept)", "python"), fence("print(kept)", "python")]
    ran = play("pyautogui", replies, kernel_guest, observe=("terminal",))
    assert ran.records[0].stdout == "7\n"
    assert "NameError" in ran.records[1].error or "kept" in ran.records[1].refused
    assert "7" in ran.outcome.messages[-2]["text"] or any("7" in m["text"] for m in ran.outcome.messages)


def test_output_is_observed_only_where_the_terminal_is(play: Run, kernel_guest: Any) -> None:
    replies = [cell("print('se' + 'cret')\n'shown' + '!'")]
    for observe, is_seen in ((("terminal",), True), ((), False)):
        ran = play("code", replies, kernel_guest, observe=observe)
        seen = "\n".join(message["text"] for message in ran.outcome.messages)
        assert ("secret" in seen, "shown!" in seen) == (is_seen, is_seen)
        assert ran.records[0].stdout == "secret\n"


def test_the_kernel_of_the_space_without_a_desktop_refuses_it_too(play: Run, kernel_guest: Any) -> None:
    kernel_guest.run_cell("import os; os.environ['DISPLAY'] = ':9'", timeout_s=20)
    # What no parser sees: names that are put together when the cell runs.
    hidden = "import importlib, os\nname = lambda *parts: ''.join(reversed(parts))\n"
    hidden += "print(os.environ.get(name('PLAY', 'DIS')))\nimportlib.import_module(name('gui', 'pyauto'))"
    ran = play("code", [cell(hidden)], kernel_guest)
    assert ran.records[0].stdout == "None\n"
    assert "refused" in ran.records[0].error


def test_files_are_made_viewed_and_changed_in_place(play: Run, kernel_guest: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "made" / "note.txt")
    replies = [
        call("create", path=path, text="one\ntwo\nthree\n"),
        call("str_replace", path=path, old="two", new="2"),
        call("insert", path=path, line=1, text="between"),
        call("view", path=path, first_line=2, last_line=3),
        call("str_replace", path=path, old="e", new="E"),
        call("insert", path=path, line=99, text="far"),
        call("view", path=path + ".missing"),
        call("view", path=str(tmp_path)),
    ]
    ran = play("computer+tools", replies, kernel_guest)
    assert Path(path).read_text() == "one\nbetween\n2\nthree\n"
    assert "2\tbetween\n3\t2" in ran.records[3].stdout
    refused = [record.refused for record in ran.records]
    assert refused[:4] == [None] * 4
    assert "exactly once" in refused[4]
    assert "no line 99" in refused[5]
    assert "No such file" in refused[6]
    assert refused[7]
    assert {record.action for record in ran.records} == {"file"}


def test_a_screenshot_on_request_is_shown_in_that_step_alone(play: Run, screen_guest: Any) -> None:
    guest = screen_guest(answered_with_versions)
    ran = play("computer+tools", [call("screenshot"), call("cursor_position"), call("screenshot")], guest)
    shown = [message["image"] for message in ran.outcome.messages if message["image"]]
    assert len(shown) == 2
    assert "(10, 20)" in "".join(message["text"] for message in ran.outcome.messages)
    assert ran.screens.saved.count(0) == 2


def test_pictures_are_shrunk_and_coordinates_mapped_back(play: Run, screen_guest: Any) -> None:
    guest = screen_guest()
    config = {"picture_px": 640}
    ran = play("computer_13", [ALLOWED["computer_13"][0]], guest, observe=("screenshot",), config=config)
    assert "x=6, y=8" in sent(guest)
    assert "640 x 400" in ran.outcome.messages[1]["text"]
    out = [fence('{"action_type": "CLICK", "x": 700, "y": 4}', "json")]
    assert "off the screen" in play("computer_13", out, screen_guest(), config=config).records[0].refused


def test_each_step_is_recorded_with_what_the_model_said(play: Run, screen_guest: Any) -> None:
    ran = play("computer", [{"content": "Now.", **call("wait", seconds=0)}], screen_guest())
    [record] = ran.records
    assert record.model_output == "Now."
    assert [(made.name, made.arguments) for made in record.tool_calls] == [("wait", {"seconds": 0})]
    assert json.loads(record.code) == {"act": "wait", "seconds": 0}
    assert (record.action, record.lines) == ("wait", {"wait": 1})


@pytest.mark.parametrize("space", SPACES)
def test_the_frameworks_own_time_is_small_in_every_space(play: Run, screen_guest: Any, space: str) -> None:
    ran = play(
        space, [ALLOWED[space][0]] * 20, screen_guest(answered_with_versions), limits=Limits(steps=20),
        observe=() if space in ("code", "computer+tools") else ("screenshot",),
    )  # fmt: skip
    own = sorted(record.framework_s for record in ran.records)
    assert own[len(own) // 2] < 0.03


def test_the_documentation_has_every_space_and_observation() -> None:
    text = (Path(__file__).parents[3] / "docs" / "agents.md").read_text()
    for entry in catalogue().entries:
        if entry.kind != "agent":
            assert f"\n| `{entry.name}` |" in text
