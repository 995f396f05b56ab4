"""Guards where clicks are drawn: what an action names is found, what it does not name is never guessed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.viewer.pointer import MAX_SPOTS, PointerTrail


def places(code: str, trail: PointerTrail | None = None) -> list[tuple[str, float, float, str]]:
    return [(spot.kind, spot.x, spot.y, spot.label) for spot in (trail or PointerTrail()).follow(code)]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pyautogui.click(3, 4)", [("click", 3, 4, "")]),
        ("pyautogui.click(x=3, y=-4)", [("click", 3, -4, "")]),
        ("pyautogui.click((3, 4), button='right')", [("click", 3, 4, "right")]),
        ("pyautogui.click(3, 4, 2)", [("click", 3, 4, "double")]),
        ("pyautogui.doubleClick(3.5, 4)", [("click", 3.5, 4, "double")]),
        ("pyautogui.middleClick(3, 4)", [("click", 3, 4, "middle")]),
        ("pyautogui.moveTo(1, 2)\npyautogui.click()", [("move", 1, 2, ""), ("click", 1, 2, "")]),
        ("pyautogui.moveTo(1, 2)\npyautogui.move(10, 0)", [("move", 1, 2, ""), ("move", 11, 2, "")]),
        ("pyautogui.scroll(-3, 5, 6)", [("scroll", 5, 6, "down 3")]),
        ("pyautogui.hscroll(3, x=5, y=6)", [("scroll", 5, 6, "right 3")]),
        ("import pyautogui as p\np.rightClick(1, 2)", [("click", 1, 2, "right")]),
        ("from pyautogui import click as c, moveTo\nmoveTo(1, 2); c(3, 4)", [("move", 1, 2, ""), ("click", 3, 4, "")]),
        ("!ls\nfor _ in range(2):\n    pyautogui.click(7, 8)", [("click", 7, 8, "")]),
    ],
)
def test_calls_of_pyautogui_are_found_where_they_stand(code: str, expected: list[object]) -> None:
    assert places(code) == expected


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        ({"act": "move_to", "place": {"x": 1, "y": 2}}, [("move", 1, 2, "")]),
        (
            {"act": "click", "place": {"x": 1, "y": 2}, "button": "right", "clicks": 3},
            [("click", 1, 2, "right triple")],
        ),
        ({"act": "scroll", "dy": 2, "dx": -1, "place": {"x": 1, "y": 2}}, [("scroll", 1, 2, "up 2 left 1")]),
        ({"act": "click", "place": {"mark": 4}}, []),
        ({"act": "click"}, []),
        ({"act": "typing", "text": "pyautogui.click(1, 2)"}, []),
    ],
)
def test_structured_acts_are_found(act: dict[str, object], expected: list[object]) -> None:
    assert places(json.dumps(act)) == expected


@pytest.mark.parametrize(
    "code",
    [
        "x = 3\npyautogui.click(x, 4)",
        "pyautogui.click(*place)",
        "pyautogui.click(**place)",
        "pyautogui.click(1)",
        "pyautogui.click(True, 4)",
        f"pyautogui.click({'9' * 400}, 4)",
        "other.click(3, 4)",
        "'pyautogui.click(3, 4)'",
        "pyautogui.click(3, 4",
        "pyautogui.click(locateOnScreen('a.png'))",
        "{" * 2000,
        '{"act": "click", "place": {"x": NaN, "y": 1}}',
        "pyautogui.click(3, 4)" + "\n#" * 40_000,
    ],
)
def test_what_names_no_place_is_not_guessed(code: str) -> None:
    assert places(code) == []


def test_a_drag_shows_where_it_began() -> None:
    (spot,) = PointerTrail().follow('{"act":"drag_to","place":{"x":9,"y":8},"start":{"x":1,"y":2}}')
    assert (spot.start, spot.x, spot.y) == ((1, 2), 9, 8)
    trail = PointerTrail()
    trail.follow("pyautogui.moveTo(5, 5)")
    (dragged,) = trail.follow("pyautogui.dragTo(7, 7)")
    assert dragged.start == (5, 5)
    (marked,) = trail.follow('{"act":"drag_to","place":{"x":9,"y":8},"start":{"mark":1}}')
    assert marked.start is None


def test_the_pointer_is_followed_from_step_to_step() -> None:
    trail = PointerTrail()
    trail.follow("import pyautogui as gui\ngui.moveTo(10, 20)")
    assert places("gui.click()", trail) == [("click", 10, 20, "")]
    trail.follow("gui.click(50, 60)", is_refused=True)
    assert trail.place == (10, 20)
    trail.follow("gui.moveTo(somewhere)")
    assert trail.place is None
    assert places("gui.click()", trail) == []


def test_a_flood_of_clicks_is_bounded() -> None:
    trail = PointerTrail()
    assert len(trail.follow("\n".join(f"pyautogui.click({n}, 1)" for n in range(900)))) == MAX_SPOTS
    assert trail.place == (899, 1)


@given(
    st.text()
    | st.lists(st.sampled_from(["pyautogui.click(", "1", ",", ")", "\n", "{", '"act"', ":", "\x00"])).map("".join)
)
def test_no_text_makes_it_raise(code: str) -> None:
    PointerTrail().follow(code)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.dictionaries(
    st.sampled_from(["act", "place", "x", "y", "mark", "start", "button", "clicks"]), inner)))  # fmt: skip
def test_no_json_makes_it_raise(value: object) -> None:
    PointerTrail().follow(json.dumps(value))
