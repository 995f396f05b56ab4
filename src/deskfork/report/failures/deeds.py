"""What one step did to the desktop, as far as its code says so itself."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deskfork.records.trajectory import StepRecord

_CLICK = re.compile(r"(?<!\w)(?:click|leftClick|rightClick|middleClick|doubleClick|tripleClick)\s*\(")
_TYPE = re.compile(r"(?<!\w)typewrite\s*\(|(?:\b(?:pyautogui|pag|pg|gui)\.|(?<![\w.]))write\s*\(")
_PRESS = re.compile(r"(?<!\w)(?:press|hotkey|shortcut|keyDown|hold)\s*\(")
_OTHER = re.compile(r"(?<!\w)(?:drag|dragTo|dragRel|scroll|hscroll|vscroll|mouseDown|mouseUp)\s*\(")
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_PRESSES = frozenset({"press", "key_down", "key_up", "hotkey"})
_LOOKS = frozenset({"screenshot"})
_IDLE = frozenset({"wait", "screenshot", "cursor_position"})


@dataclass(frozen=True)
class Deeds:
    """What a step did with mouse and keyboard, or what it would have done had it not been refused."""

    clicks: bool = False
    types: bool = False
    """Typed text, which is meant for some window."""
    presses: bool = False
    """Pressed keys, which may move the focus."""
    others: bool = False
    """Dragged, scrolled, held a button, or did something that is no matter of the desktop."""
    points: bool = False
    """Named a place by pixels; only told for structured acts."""
    looks: bool = False
    """Asked for a screenshot; only told for structured acts."""
    is_idle: bool = False
    """Did nothing but wait, look, or ask where the pointer is."""

    @property
    def only_clicks(self) -> bool:
        """Whether it clicked and did nothing else but move the pointer and wait."""
        return self.clicks and not (self.types or self.presses or self.others)

    @property
    def drives(self) -> bool:
        """Whether it did anything to the desktop."""
        return self.clicks or self.types or self.presses or self.others


def structured_acts(code: str | None) -> list[Mapping[str, Any]]:
    """Return the acts of a step that was given as one JSON object a line; none for any other code."""
    if code is None or not code.startswith("{"):
        return []
    return list(_objects(code))


def _objects(code: str) -> Iterator[Mapping[str, Any]]:
    for line in code.split("\n"):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and isinstance(found.get("act"), str):
            yield found


def deeds_of(step: StepRecord) -> Deeds:
    """Return what a step did with mouse and keyboard.

    Python is searched for PyAutoGUI's functions by their names, without being run or parsed: a name that stands in a
    text counts, a function called by another name does not.
    """
    if acts := structured_acts(step.code):
        return _of_acts(acts)
    if step.action == "wait":
        return Deeds(is_idle=True)
    if not step.code or not (step.lines.get("gui") or step.refused):
        return Deeds()
    code = _COMMENT.sub("", step.code)
    return Deeds(
        clicks=bool(_CLICK.search(code)),
        types=bool(_TYPE.search(code)),
        presses=bool(_PRESS.search(code)),
        others=bool(_OTHER.search(code)) or (step.action != "gui" and not step.refused),
    )


def _of_acts(acts: list[Mapping[str, Any]]) -> Deeds:
    names = {act["act"] for act in acts}
    known = {"click", "typing", "move_to"} | _PRESSES | _IDLE
    return Deeds(
        clicks="click" in names,
        types="typing" in names,
        presses=bool(names & _PRESSES),
        others=bool(names - known),
        points=any(_is_placed(act) for act in acts),
        looks=bool(names & _LOOKS),
        is_idle=names <= _IDLE,
    )


def _is_placed(act: Mapping[str, Any]) -> bool:
    return any(isinstance(place := act.get(name), dict) and "x" in place for name in ("place", "start"))
