"""Guards what agents are shown: each observation for each action space, in bounds, and acts by a picture's marks."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from deskfork.agent.config import parse_agent
from deskfork.agent.observe.som import marked
from deskfork.agent.observe.tree import CHARS_A_TOKEN, actable, centre, table, telling
from deskfork.agent.prelude import is_our_own
from deskfork.agent.view import View
from deskfork.core.types import AccessibleNode, CellResult

SPACES = ("code+gui", "code", "pyautogui", "computer_13", "computer", "computer+tools")
VIEW = View(1280, 800)
REPLIES = {
    "code+gui": "<code>\npass\n</code>",
    "code": "<code>\npass\n</code>",
    "pyautogui": "```python\npyautogui.click(1, 2)\n```",
    "computer_13": '```json\n{"action_type": "CLICK", "x": 1, "y": 2}\n```',
    "computer": {"tool_calls": [{"name": "left_click", "arguments": {"x": 1, "y": 2}}]},
    "computer+tools": {"tool_calls": [{"name": "left_click", "arguments": {"x": 1, "y": 2}}]},
}


def node(role: str, name: str = "", x: int = 0, y: int = 0, **more: Any) -> AccessibleNode:
    given_ = {
        "depth": 1,
        "text": "",
        "states": (),
        "width_px": 40,
        "height_px": 20,
        "app": "app",
        "is_clickable": False,
    }
    return AccessibleNode(role=role, name=name, x=x, y=y, **{**given_, **more})


NODES = [
    node("frame", "A window", width_px=1280, height_px=800),
    node("panel"),
    node("push button", "Save", 100, 50, is_clickable=True),
    node("entry", "Name", 200, 60, text="typed\x1b[2J\nhere", states=("focused", "editable"), is_clickable=True),
    node("label", "Just said", 300, 70),
    node("push button", "Hidden in part", 1270, 790, is_clickable=True),
]


@pytest.fixture
def play(run: Any, tmp_path: Path) -> Any:
    def play_it(
        space: str, observe: list[object], guest: Any, replies: list[object] | None = None, **config: Any
    ) -> Any:
        script, agent = tmp_path / "script.yaml", tmp_path / "agent.yaml"
        script.write_text(yaml.safe_dump(replies or [REPLIES[space]]))
        agent.write_text(yaml.safe_dump({"name": "a", "actions": space, "observe": observe, **config}))
        return run(parse_agent(str(agent), f"scripted:{script}"), guest)

    return play_it


@pytest.fixture
def guest(screen_guest: Any) -> Any:
    made = screen_guest(lambda code: CellResult("{}" if "_deskfork_versions" in code else "", "", (), 0.0))
    made.nodes = NODES
    return made


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", ["screenshot", "a11y_tree", "som", "text_only"])
def test_each_observation_is_shown_before_the_first_step_and_after_each(
    play: Any, guest: Any, space: str, name: str
) -> None:
    if (space, name) == ("code", "som"):
        pytest.skip("refused: see test_agent_config")
    ran = play(space, [name], guest)
    texts = [message["text"] for message in ran.outcome.messages]
    images = [message["image"] for message in ran.outcome.messages if message["image"]]
    assert len(images) == (2 if name in ("screenshot", "som") else 0)
    said = {"a11y_tree": "Elements on the screen", "som": "Marks on the picture", "text_only": "Screen 1280x800"}
    if name in said:
        assert sum(said[name] in text for text in texts) == 2
    assert ran.records[0].screen == "screens/001.png"


def test_the_table_tells_what_matters_of_each_element(play: Any, guest: Any) -> None:
    ran = play("code+gui", ["a11y_tree"], guest)
    shown = ran.outcome.messages[1]["text"].split("Elements on the screen:\n")[1].splitlines()
    assert shown[0] == "role\tname\ttext\tcentre\tsize\tstate"
    assert shown[1:] == [
        "frame\tA window\t\t(640, 400)\t1280x800",
        "push button\tSave\t\t(120, 60)\t40x20",
        "entry\tName\ttyped [2J here\t(220, 70)\t40x20\tfocused editable",
        "label\tJust said\t\t(320, 80)\t40x20",
        "push button\tHidden in part\t\t(1275, 795)\t40x20",
    ]


def test_what_is_missing_is_said(play: Any, guest: Any) -> None:
    guest.is_partial = True
    assert "did not answer" in play("code+gui", ["a11y_tree"], guest).outcome.messages[1]["text"]


@pytest.mark.parametrize(
    ("space", "reply"),
    [
        ("code+gui", "<code>\nimport pyautogui\npyautogui.click(*mark_2)\n</code>"),
        ("pyautogui", "```python\npyautogui.click(*mark_2)\n```"),
        ("computer_13", '```json\n{"action_type": "CLICK", "mark": 2}\n```'),
        ("computer", {"tool_calls": [{"name": "left_click", "arguments": {"mark": 2}}]}),
        ("computer+tools", {"tool_calls": [{"name": "left_click", "arguments": {"mark": 2}}]}),
    ],
)
@pytest.mark.parametrize("scale", [1, 2])
def test_an_act_may_name_a_mark(play: Any, guest: Any, space: str, reply: object, scale: int) -> None:
    ran = play(space, ["som"], guest, [reply], picture_px=1280 // scale)
    assert ran.records[0].error is None
    # In code, places are the picture's, and PyAutoGUI's own are mapped back; in structured acts they are real.
    in_code = (220 // scale, 70 // scale)
    wanted = {"code+gui": f"mark_2 = {in_code}", "pyautogui": f"'mark_2': {in_code}"}.get(space, "x=220, y=70")
    assert any(wanted in code for code, _ in guest.cells)


@pytest.mark.parametrize(
    ("space", "reply"),
    [
        ("pyautogui", "```python\npyautogui.click(*mark_77)\n```"),
        ("computer_13", '```json\n{"action_type": "CLICK", "mark": 77}\n```'),
        ("computer", {"tool_calls": [{"name": "left_click", "arguments": {"mark": 77}}]}),
    ],
)
def test_a_mark_that_is_not_shown_is_refused(play: Any, guest: Any, space: str, reply: object) -> None:
    ran = play(space, ["som"], guest, [reply])
    assert "77" in ran.records[0].refused
    assert not [code for code, _ in guest.cells if not is_our_own(code)]


def test_only_the_newest_pictures_are_shown_again(play: Any, guest: Any) -> None:
    ran = play("computer_13", ["screenshot"], guest, [REPLIES["computer_13"]] * 5, context={"images": 2})
    assert [record.images_dropped for record in ran.records] == [0, 0, 1, 2, 3]
    assert sum(message["image"] is not None for message in ran.outcome.messages) == 6


nodes = st.builds(
    node,
    st.sampled_from(["push button", "label", "entry", "panel", "x" * 100]),
    st.text(max_size=300),
    st.integers(-(10**6), 10**6),
    st.integers(-(10**6), 10**6),
    text=st.text(max_size=300),
    width_px=st.integers(0, 10**6),
    height_px=st.integers(0, 10**6),
    is_clickable=st.booleans(),
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(nodes, max_size=60), st.integers(100, 5000))
def test_any_tree_makes_a_table_in_bounds_and_a_picture(found: list[AccessibleNode], tokens: int) -> None:
    rows = [(one.role, one) for one in telling(found)]
    text = table(rows, VIEW, first="role", tokens=tokens)
    assert len(text) <= tokens * CHARS_A_TOKEN + 200
    # One line a row, and the head, and at most one that says what is left out.
    assert text.count("\n") <= len(rows) + 1
    assert all(character.isprintable() or character in "\t\n" for character in text)
    picture = marked(Image.new("RGB", (1280, 800)), dict(enumerate(actable(found), start=1)))
    assert picture.size == (1280, 800)


@given(nodes)
def test_the_centre_of_what_is_on_the_screen_is_on_the_screen(one: AccessibleNode) -> None:
    is_shown = one.x < 1280 and one.y < 800 and one.x + one.width_px > 0 and one.y + one.height_px > 0
    if is_shown and one.width_px and one.height_px:
        x, y = centre(one, VIEW)
        assert 0 <= x < 1280
        assert 0 <= y < 800
