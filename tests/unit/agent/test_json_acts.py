"""Guards: a reply's actions are what the model wrote, or it is told which parameter of which action is wrong."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.agent.actions.acts import (
    Act,
    ButtonDown,
    ButtonUp,
    Click,
    Done,
    DragTo,
    Fail,
    Hotkey,
    KeyDown,
    KeyUp,
    Mark,
    MoveTo,
    Pixels,
    Press,
    Scroll,
    Typing,
    Wait,
)
from deskfork.agent.actions.json_acts import MAX_ACTS, parse_computer_13
from deskfork.agent.actions.refusal import Refused

AT = Pixels(x=56.1, y=65)
FORMS: list[tuple[dict[str, object], Act]] = [
    ({"action_type": "MOVE_TO", "x": 56.1, "y": 65}, MoveTo(place=AT)),
    ({"action_type": "MOVE_TO", "mark": 3}, MoveTo(place=Mark(mark=3))),
    ({"action_type": "CLICK"}, Click()),
    (
        {"action_type": "CLICK", "button": "right", "x": 56.1, "y": 65, "num_clicks": 3},
        Click(button="right", clicks=3, place=AT),
    ),
    ({"action_type": "CLICK", "mark": 3}, Click(place=Mark(mark=3))),
    ({"action_type": "MOUSE_DOWN"}, ButtonDown()),
    ({"action_type": "MOUSE_UP", "button": "middle"}, ButtonUp(button="middle")),
    ({"action_type": "RIGHT_CLICK", "x": 56.1, "y": 65}, Click(button="right", place=AT)),
    ({"action_type": "DOUBLE_CLICK"}, Click(clicks=2)),
    ({"action_type": "DRAG_TO", "x": 56.1, "y": 65}, DragTo(place=AT)),
    ({"action_type": "SCROLL", "dx": 1, "dy": -2}, Scroll(dx=1, dy=-2)),
    ({"action_type": "SCROLL", "clicks": -3}, Scroll(dy=-3)),
    ({"action_type": "TYPING", "text": "```a```\n"}, Typing(text="```a```\n")),
    ({"action_type": "PRESS", "key": "enter"}, Press(key="enter")),
    ({"action_type": "KEY_DOWN", "key": "Shift_L"}, KeyDown(key="shiftleft")),
    ({"action_type": "KEY_UP", "key": "shift"}, KeyUp(key="shift")),
    ({"action_type": "HOTKEY", "keys": ["ctrl", "C"]}, Hotkey(keys=("ctrl", "c"))),
    ({"action_type": "WAIT"}, Wait()),
    ({"action_type": "FAIL"}, Fail()),
    ({"action_type": "DONE"}, Done()),
]


@pytest.mark.parametrize(("given_form", "act"), FORMS)
def test_each_action_is_understood_flat_and_nested_fenced_and_bare(given_form: dict[str, object], act: Act) -> None:
    parameters = {name: value for name, value in given_form.items() if name != "action_type"}
    nested = {"action_type": given_form["action_type"], "parameters": parameters}
    for form in (given_form, nested):
        text = json.dumps(form)
        for reply in (text, f"I do this:\n```json\n{text}\n```\nNow.", f"```\n{text}\n```", f"```json {text}```"):
            assert parse_computer_13(reply) == [act]


@pytest.mark.parametrize(
    "word", ["WAIT", " DONE\n", "```WAIT```", "```\nFAIL\n```", "```json\nDONE\n```", "```WAIT\n```"]
)
def test_a_bare_word_is_an_action(word: str) -> None:
    (act,) = parse_computer_13(word)
    assert act.act.upper() in word


def test_blocks_and_lists_keep_their_order_and_json_fences_win() -> None:
    wait, done = '{"action_type": "WAIT"}', '{"action_type": "DONE"}'
    assert parse_computer_13(f"```json\n[{wait}, {wait}]\n```\nthen\n```json\n{done}\n```") == [Wait(), Wait(), Done()]
    assert parse_computer_13(f"```\n{done}\n```\n```json\n{wait}\n```") == [Wait()]
    assert parse_computer_13(f"```json\n{wait}\n{done}\n```") == [Wait(), Done()]


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("", "no action"),
        ("I would click the button.", "no action"),
        ("```json\n```", "no JSON object"),
        ("```json\n[]\n```", "no action"),
        ("```python\npyautogui.click()\n```", "'python' is no action"),
        ('```json\n{"action_type": "WAIT"}', "not closed"),
        ("```json\n{'action_type': 'WAIT'}\n```", "not JSON"),
        ('```json\n{"action_type": "WAIT"} // now\n```', "stands after the JSON"),
        ('{"action_type": "WAIT"} and so on', "stands after the JSON"),
        ('{"type": "WAIT"}', "action 1.*no action_type"),
        ('["WAIT"]', "no action_type"),
        ('{"action_type": "CLIK"}', "did you mean CLICK"),
        ('{"action_type": "click"}', "did you mean CLICK"),
        ('{"action_type": "CLICK", "x": 1}', "CLICK: y is missing"),
        ('{"action_type": "CLICK", "x": 1, "y": 2, "mark": 3}', "not both"),
        ('{"action_type": "CLICK", "mark": 1.5}', "mark must be the number of a mark"),
        ('{"action_type": "CLICK", "x": "1", "y": 2}', "x must be a number of pixels"),
        ('{"action_type": "CLICK", "x": true, "y": 2}', "x must be a number of pixels"),
        ('{"action_type": "CLICK", "x": NaN, "y": 2}', "not JSON: NaN"),
        ('{"action_type": "CLICK", "x": 1e999, "y": 2}', "x"),
        ('{"action_type": "CLICK", "x": ' + "9" * 5000 + ', "y": 2}', "not JSON"),
        ('{"action_type": "CLICK", "x": ' + "9" * 400 + ', "y": 2}', "x"),
        ('{"action_type": "CLICK", "num_clicks": 4}', "num_clicks must be 1, 2 or 3"),
        ('{"action_type": "CLICK", "button": ["left"]}', "button must be one of left"),
        ('{"action_type": "CLICK", "speed": 1}', "unknown parameter 'speed'; it takes button"),
        ('{"action_type": "CLICK", "parameters": {}, "x": 1}', "unknown parameter 'parameters'"),
        ('{"action_type": "CLICK", "x": 1, "x": 2}', "stands twice"),
        ('{"action_type": "MOVE_TO"}', "x and y are missing"),
        ('{"action_type": "SCROLL"}', "dx and dy are missing"),
        ('{"action_type": "SCROLL", "dy": 1.5}', "dy must be a whole number"),
        ('{"action_type": "SCROLL", "dy": 1, "clicks": 2}', "either clicks or dx and dy"),
        ('{"action_type": "SCROLL", "clicks": 1000}', "less than or equal to 100"),
        ('{"action_type": "TYPING"}', "text is missing"),
        ('{"action_type": "TYPING", "text": "\\u00e9"}', "cannot type"),
        ('{"action_type": "TYPING", "text": "\\ud800"}', "TYPING"),
        ('{"action_type": "PRESS", "key": "ctrl+s"}', "several"),
        ('{"action_type": "HOTKEY", "keys": "ctrl+s"}', "keys must be a list"),
        ('{"action_type": "HOTKEY", "keys": []}', "1 to 6 keys"),
        ('{"action_type": "DONE", "answer": 1}', "it takes none"),
        ('[{"action_type": "DONE"}, {"action_type": "WAIT"}]', "nothing may follow"),
        ("[" + ",".join(['{"action_type": "WAIT"}'] * (MAX_ACTS + 1)) + "]", "at most 20"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_wrong_reply_is_refused_and_told_why(reply: str, told: str) -> None:
    with pytest.raises(Refused, match=told):
        parse_computer_13(reply)


def test_a_refusal_of_an_endless_reply_is_short() -> None:
    for reply in ('{"' + "x" * 100_000, '{"action_type": "' + "x" * 100_000 + '"}', "```" + "x" * 100_000):
        with pytest.raises(Refused) as refused:
            parse_computer_13(reply)
        assert len(str(refused.value)) < 1000


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["x", "y", "mark", "button", "num_clicks", "dx", "dy", "clicks", "text", "key", "keys", "parameters"]
)
KINDS = st.sampled_from([str(form["action_type"]) for form, _ in FORMS])
ODD = st.builds(lambda kind, given: json.dumps({"action_type": kind} | given), KINDS, st.dictionaries(NAMES, JSON))


@given(
    st.text()
    | st.text(alphabet='`{}[]":,jsonWAITDONE \n')
    | ODD
    | ODD.map("```json\n{}\n```".format)
    | JSON.map(json.dumps)
)
def test_any_reply_is_acts_or_refused(reply: str) -> None:
    with contextlib.suppress(Refused):
        assert 1 <= len(parse_computer_13(reply)) <= MAX_ACTS
