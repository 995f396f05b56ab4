"""Acts as a Python program for the guest: PyAutoGUI drives its desktop.

Source: PyAutoGUI 0.9.54, X11 back end: `scroll` and `hscroll` turn the wheel by as many clicks, up and right positive.
"""

import re
from collections.abc import Sequence

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
    Place,
    Press,
    Scroll,
    Typing,
    Wait,
)
from deskfork.agent.actions.refusal import Refused

DRAG_S = 0.5
"""How long a drag's movement takes; what is dragged in a browser follows several motions, not a leap."""
_PREFIX = ("import pyautogui", "import time", "pyautogui.FAILSAFE = False")
# A US keymap has `less` first on the key between Shift and Z, which PyAutoGUI presses together with Shift: a `>`.
_LESS = ("shift", ",")


def program(acts: Sequence[Act]) -> str:
    """Return a program that performs the acts in order; it needs nothing but PyAutoGUI and a display.

    Args:
        acts: As `placed` returns them; Done and Fail add nothing.

    Raises:
        Refused: An act names a mark, which only `placed` can look up.
    """
    lines = list(_PREFIX)
    for act in acts:
        lines += _lines(act)
    return "\n".join(lines) + "\n"


def _lines(act: Act) -> list[str]:
    match act:
        case MoveTo(place=place):
            return [f"pyautogui.moveTo({_at(place)})"]
        case Click(button=button, clicks=clicks, place=at):
            return [f"pyautogui.click({_at(at, comma=True)}clicks={clicks!r}, button={button!r})"]
        case ButtonDown(button=button):
            return [f"pyautogui.mouseDown(button={button!r})"]
        case ButtonUp(button=button):
            return [f"pyautogui.mouseUp(button={button!r})"]
        case DragTo():
            return _drag(act)
        case Scroll():
            return _scroll(act)
        case Typing(text=text):
            return _typing(text)
        case Wait(seconds=seconds):
            return [f"time.sleep({seconds!r})"]
        case Done() | Fail():
            return []
    return _keys(act)


def _keys(act: Press | KeyDown | KeyUp | Hotkey) -> list[str]:
    if isinstance(act, Hotkey):
        pressed = [part for name in act.keys for part in (_LESS if name == "<" else (name,))]
        return [f"pyautogui.hotkey({', '.join(map(repr, dict.fromkeys(pressed)))})"]
    if isinstance(act, Press):
        return [_less()] if act.key == "<" else [f"pyautogui.press({act.key!r})"]
    does = "keyDown" if isinstance(act, KeyDown) else "keyUp"
    names = _LESS if act.key == "<" else (act.key,)
    return [f"pyautogui.{does}({name!r})" for name in (names if does == "keyDown" else reversed(names))]


def _drag(act: DragTo) -> list[str]:
    return [
        *([f"pyautogui.moveTo({_at(act.start)})"] if act.start else []),
        f"pyautogui.mouseDown(button={act.button!r})",
        f"pyautogui.moveTo({_at(act.place)}, duration={DRAG_S!r})",
        f"pyautogui.mouseUp(button={act.button!r})",
    ]


def _scroll(act: Scroll) -> list[str]:
    turns = [("scroll", act.dy), ("hscroll", act.dx)]
    moved = [f"pyautogui.moveTo({_at(act.place)})"] if act.place else []
    return moved + [f"pyautogui.{does}({clicks!r})" for does, clicks in turns if clicks]


def _typing(text: str) -> list[str]:
    parts = [part for part in re.split("(<)", text) if part]
    return [_less() if part == "<" else f"pyautogui.write({part!r})" for part in parts]


def _less() -> str:
    return f"pyautogui.hotkey({', '.join(map(repr, _LESS))})"


def _at(place: Place | None, *, comma: bool = False) -> str:
    if place is None:
        return ""
    if isinstance(place, Mark):
        raise Refused(f"mark {place.mark} has no place on the screen yet")
    return f"x={int(place.x)!r}, y={int(place.y)!r}" + (", " if comma else "")
