"""Guards: an act lands where the model saw its target, under a name of a key that really does something."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from deskfork.agent.actions import keys
from deskfork.agent.actions.acts import (
    Click,
    DragTo,
    Frame,
    Hotkey,
    Mark,
    MoveTo,
    Pixels,
    Press,
    Typing,
    act_of,
    placed,
)
from deskfork.agent.actions.refusal import Refused

FRAME = Frame(1920, 1080, (1.5, 1.35), {1: (10, 20), 7: (1900, 1070), 8: (1920, 5)})


def test_places_are_scaled_to_the_real_screen() -> None:
    assert placed(MoveTo(place=Pixels(x=100, y=200)), FRAME) == MoveTo(place=Pixels(x=150, y=270))
    assert placed(Click(place=Pixels(x=0, y=799.9)), FRAME) == Click(place=Pixels(x=0, y=1079))
    assert placed(Click(clicks=2), FRAME) == Click(clicks=2)
    drag = DragTo(place=Mark(mark=7), start=Pixels(x=10, y=10))
    assert placed(drag, FRAME) == DragTo(place=Pixels(x=1900, y=1070), start=Pixels(x=15, y=14))


@given(st.floats(0, 1279.99), st.floats(0, 799.99))
def test_a_placed_act_is_on_the_screen_in_whole_pixels(x: float, y: float) -> None:
    place = placed(MoveTo(place=Pixels(x=x, y=y)), FRAME)
    assert isinstance(place, MoveTo)
    assert isinstance(place.place, Pixels)
    assert place.place.x in range(1920)
    assert place.place.y in range(1080)


@pytest.mark.parametrize(
    ("place", "frame", "told"),
    [
        (Pixels(x=1280, y=5), FRAME, r"\(1280, 5\) is off the screen: x goes from 0 to 1279 and y from 0 to 799"),
        (Pixels(x=-1, y=5), FRAME, "off the screen"),
        (Mark(mark=2), FRAME, "mark 2 is not shown; shown are 1, 7, 8"),
        (Mark(mark=8), FRAME, "mark 8 is off the screen"),
        (Mark(mark=1), Frame(100, 100), "no marks, give x and y"),
        (Mark(mark=99), Frame(100, 100, marks={n: (1, 1) for n in range(40)}), "19 and 20 more"),
    ],
)
def test_a_place_that_is_not_on_the_screen_is_refused(place: Pixels | Mark, frame: Frame, told: str) -> None:
    with pytest.raises(Refused, match=told):
        placed(MoveTo(place=place), frame)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, "tag"),
        ({"act": "fly"}, "'fly'"),
        ({"act": ["click"]}, "tag"),
        ({"act": "click", "place": {"x": 1}}, r"place\.y: Field required"),
        ({"act": "click", "place": {"x": 1, "y": 2, "mark": 3}}, r"place\.mark: Extra inputs"),
        ({"act": "click", "place": {"x": True, "y": 2}}, r"place\.x"),
        ({"act": "click", "place": {"x": "1", "y": 2}}, r"place\.x"),
        ({"act": "click", "place": {"x": float("nan"), "y": 2}}, r"place\.x"),
        ({"act": "click", "place": {"x": 10**400, "y": 2}}, r"place\.x"),
        ({"act": "click", "clicks": 6}, "clicks"),
        ({"act": "click", "button": "back"}, "button"),
        ({"act": "move_to"}, "place: Field required"),
        ({"act": "scroll", "dy": 101}, "dy"),
        ({"act": "scroll", "dy": 1.5}, "dy"),
        ({"act": "wait", "seconds": 61}, "seconds"),
        ({"act": "wait", "seconds": -1}, "seconds"),
        ({"act": "typing", "text": "x" * 10_001}, "text"),
        ({"act": "typing", "text": "naïve"}, r"cannot type 'ï' \(U\+00EF, character 3"),
        ({"act": "typing", "text": 1}, "text"),
        ({"act": "press", "key": "entr"}, "did you mean 'enter'"),
        ({"act": "press", "key": "ctrl+s"}, "several"),
        ({"act": "hotkey", "keys": []}, "1 to 6 keys"),
        ({"act": "hotkey", "keys": ["a"] * 7}, "1 to 6 keys"),
        ({"act": "hotkey", "keys": "ctrl"}, "keys"),
        ({"act": "click", "speed": 1}, "speed: Extra inputs"),
    ],
)
def test_a_wrong_act_is_refused_with_the_field_that_is_wrong(values: dict[str, object], told: str) -> None:
    with pytest.raises(Refused, match=told):
        act_of(values)


def test_an_act_of_right_values_is_made() -> None:
    assert act_of({"act": "click", "place": {"mark": 3}, "button": "right"}) == Click(
        button="right", place=Mark(mark=3)
    )
    assert act_of({"act": "hotkey", "keys": ["Control_L", "Next"]}) == Hotkey(keys=("ctrlleft", "pagedown"))
    with pytest.raises(ValidationError):
        Click(clicks=0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Return", "return"), ("BackSpace", "backspace"), ("Escape", "escape"), ("Page_Up", "pageup"),
        ("Prior", "pageup"),
        ("Next", "pagedown"), ("Control_L", "ctrlleft"), ("ctrl", "ctrl"), ("Super", "win"), ("cmd", "win"),
        ("command", "win"), ("option", "alt"), ("KP_Enter", "enter"), ("KP_7", "7"), ("num7", "7"), ("F11", "f11"),
        ("space", "space"), ("plus", "+"), ("minus", "-"), ("a", "a"), ("A", "A"), ("\n", "\n"), (" ", " "),
        ("ArrowLeft", "left"), ("page down", "pagedown"), ("Caps Lock", "capslock"), ("print-screen", "printscreen"),
        (" enter ", "enter"),
    ],
)  # fmt: skip
def test_keys_have_the_names_that_models_use(name: str, expected: str) -> None:
    assert keys.key(name) == expected
    assert Press(key=name).key == expected


@pytest.mark.parametrize("name", ["", "  ", "é", "nokey", "volumeup", "fn", "ctrl+c", "\x0b", "\uff41"])
def test_what_is_no_key_here_is_refused(name: str) -> None:
    with pytest.raises(Refused):
        keys.key(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ctrl+shift+t", ("ctrl", "shift", "t")), ("ctrl++", ("ctrl", "+")), ("+", ("+",)), ("Return", ("return",)),
        ("ctrl+plus", ("ctrl", "+")), ("super+Page_Down", ("win", "pagedown")), ("Ctrl+A", ("ctrl", "a")),
        ("A", ("A",)),
        (" ", (" ",)), ("ctrl + c", ("ctrl", "c")), ("alt+minus", ("alt", "-")),
    ],
)  # fmt: skip
def test_chords_are_split_at_the_plus(text: str, expected: tuple[str, ...]) -> None:
    assert keys.chord(text) == expected


@pytest.mark.parametrize("text", ["", "ctrl+", "+ctrl", "ctrl+++", "a++b", "ctrl+nokey", "a+b+c+d+e+f+g"])
def test_a_chord_with_a_hole_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        keys.chord(text)


@given(st.sampled_from(sorted(keys.KEYBOARD_KEYS)) | st.text(max_size=12))
def test_a_key_that_was_looked_up_stands_for_itself(name: str) -> None:
    try:
        found = keys.key(name)
    except Refused:
        return
    assert keys.key(found) == found
    assert found in keys.KEYBOARD_KEYS or found.lower() in keys.KEYBOARD_KEYS


def test_pyautogui_has_194_names() -> None:
    assert len(keys.KEYBOARD_KEYS) == 194


def test_line_ends_are_one_newline() -> None:
    assert Typing(text="a\r\nb\rc\n\t~").text == "a\nb\nc\n\t~"
