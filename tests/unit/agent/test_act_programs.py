"""Guards: a program does in the guest what its acts say, whatever text they hold; PyAutoGUI's part is recorded here."""

import sys
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.agent.actions import acts, keys
from deskfork.agent.actions.acts import Act, Frame, Mark, Pixels, placed
from deskfork.agent.actions.guards import check_block
from deskfork.agent.actions.programs import DRAG_S, program
from deskfork.agent.actions.refusal import Refused

Calls = list[tuple[object, ...]]
Run = Callable[[list[Act]], Calls]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a program where there is no screen, and tells what it asked of PyAutoGUI."""

    def run_acts(given: list[Act]) -> Calls:
        calls: Calls = []

        def record(name: str) -> Callable[..., None]:
            return lambda *args, **kwargs: calls.append((name, *args, *([kwargs] if kwargs else [])))

        names = ("moveTo", "click", "mouseDown", "mouseUp", "scroll", "hscroll", "write", "press", "keyDown", "keyUp")
        module = SimpleNamespace(FAILSAFE=True, **{name: record(name) for name in (*names, "hotkey")})
        monkeypatch.setitem(sys.modules, "pyautogui", module)
        monkeypatch.setattr(time, "sleep", record("sleep"))
        exec(program(given), {})
        assert module.FAILSAFE is False
        return calls

    return run_acts


AT = Pixels(x=3, y=4)


@pytest.mark.parametrize(
    ("act", "calls"),
    [
        (acts.MoveTo(place=AT), [("moveTo", {"x": 3, "y": 4})]),
        (acts.Click(), [("click", {"clicks": 1, "button": "left"})]),
        (acts.Click(button="right", clicks=2, place=AT), [("click", {"x": 3, "y": 4, "clicks": 2, "button": "right"})]),
        (acts.ButtonDown(button="middle"), [("mouseDown", {"button": "middle"})]),
        (acts.ButtonUp(), [("mouseUp", {"button": "left"})]),
        (acts.Scroll(dy=-3), [("scroll", -3)]),
        (acts.Scroll(dy=1, dx=2, place=AT), [("moveTo", {"x": 3, "y": 4}), ("scroll", 1), ("hscroll", 2)]),
        (acts.Typing(text="it's \\n\n"), [("write", "it's \\n\n")]),
        (acts.Typing(text="a<b"), [("write", "a"), ("hotkey", "shift", ","), ("write", "b")]),
        (acts.Typing(text=""), []),
        (acts.Press(key="Return"), [("press", "return")]),
        (acts.Press(key="<"), [("hotkey", "shift", ",")]),
        (acts.KeyDown(key="<"), [("keyDown", "shift"), ("keyDown", ",")]),
        (acts.KeyUp(key="<"), [("keyUp", ","), ("keyUp", "shift")]),
        (acts.KeyDown(key="ctrl"), [("keyDown", "ctrl")]),
        (acts.KeyUp(key="ctrl"), [("keyUp", "ctrl")]),
        (acts.Hotkey(keys=("ctrl", "S")), [("hotkey", "ctrl", "s")]),
        (acts.Hotkey(keys=("ctrl", "shift", "<")), [("hotkey", "ctrl", "shift", ",")]),
        (acts.Wait(seconds=1.5), [("sleep", 1.5)]),
        (acts.Done(answer="x"), []),
        (acts.Fail(reason="x"), []),
    ],
)
def test_each_act_is_done(run: Run, act: Act, calls: Calls) -> None:
    assert run([act]) == calls


def test_a_drag_is_a_press_a_movement_and_a_release(run: Run) -> None:
    assert run([acts.DragTo(place=AT, start=Pixels(x=1, y=2), button="middle")]) == [
        ("moveTo", {"x": 1, "y": 2}),
        ("mouseDown", {"button": "middle"}),
        ("moveTo", {"x": 3, "y": 4, "duration": DRAG_S}),
        ("mouseUp", {"button": "middle"}),
    ]


def test_acts_are_done_in_order(run: Run) -> None:
    assert run([acts.Press(key="a"), acts.Wait(seconds=0), acts.Press(key="b")]) == [
        ("press", "a"),
        ("sleep", 0),
        ("press", "b"),
    ]


def test_a_mark_that_was_not_looked_up_is_refused() -> None:
    with pytest.raises(Refused, match="mark 3"):
        program([acts.MoveTo(place=Mark(mark=3))])


PLACES = st.builds(Pixels, x=st.integers(0, 99) | st.floats(0, 99), y=st.integers(0, 99)) | st.just(Mark(mark=1))
KEYS = st.sampled_from(sorted(name for name in keys.KEYBOARD_KEYS if name not in keys._ELSEWHERE))
TYPABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126) | st.sampled_from("\n\t\r"), max_size=40)
BUTTONS = st.sampled_from(["left", "middle", "right"])
ACTS = (
    st.builds(acts.MoveTo, place=PLACES)
    | st.builds(acts.Click, button=BUTTONS, clicks=st.integers(1, 5), place=st.none() | PLACES)
    | st.builds(acts.DragTo, place=PLACES, start=st.none() | PLACES, button=BUTTONS)
    | st.builds(acts.Scroll, dy=st.integers(-100, 100), dx=st.integers(-100, 100), place=st.none() | PLACES)
    | st.builds(acts.Typing, text=TYPABLE)
    | st.builds(acts.Press, key=KEYS)
    | st.builds(acts.KeyUp, key=KEYS)
    | st.builds(acts.KeyDown, key=KEYS)
    | st.builds(acts.Hotkey, keys=st.lists(KEYS, min_size=1, max_size=4))
    | st.builds(acts.Wait, seconds=st.floats(0, 60))
    | st.builds(acts.Done, answer=st.text(max_size=9))
)


@given(st.lists(ACTS, max_size=6))
def test_every_program_compiles_and_only_drives(given_acts: list[Act]) -> None:
    text = program([placed(act, Frame(100, 100, marks={1: (5, 6)})) for act in given_acts])
    compile(text, "program", "exec")
    check_block(text, ())
