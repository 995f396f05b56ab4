"""COMPUTER_13, the action space of OSWorld and Spider2-V: one JSON object for each act.

Source: xlang-ai/Spider2-V, `desktop_env/envs/actions.py` (names, parameters), `desktop_env/controllers/python.py` (what
they do), `mm_agents/agent.py` `parse_actions_from_string` (fences); OSWorld's SCROLL has `dx` and `dy` for `clicks`.
"""

import difflib
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

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
    Place,
    Press,
    Scroll,
    Typing,
    Wait,
    explain,
)
from deskfork.agent.actions.refusal import Refused

MAX_ACTS = 20
_SHOWN_CHARS = 60
_FENCE = re.compile(r"```[ \t]*([A-Za-z0-9_+-]*)\s*")
_WORD = re.compile(r"(?:json)?\s*(WAIT|FAIL|DONE)\s*```")
_GAP = re.compile(r"[\s,]*")
_FORM = 'a fenced block holds JSON such as {"action_type": "CLICK", "x": 100, "y": 200}'
Given = Mapping[str, Any]


def parse_computer_13(reply: str) -> list[Act]:
    """Return the acts that a model's reply asks for, in order.

    All blocks fenced as `json` count, or all bare ones if there are none of those; each holds objects or lists of them,
    parameters beside `action_type` or under `parameters`. A reply that is nothing but JSON, or nothing but WAIT, FAIL
    or DONE, needs no fence. `mark` may stand in the place of `x` and `y`.

    Raises:
        Refused: There is no act in it, or one that is not as it should be; the text says which, and what is expected.
    """
    objects = _objects(reply)
    if not objects:
        raise Refused(f"no action: {_FORM}")
    if len(objects) > MAX_ACTS:
        raise Refused(f"{len(objects)} actions in one reply: give at most {MAX_ACTS}")
    acts = [_act(given, f"action {number}") for number, given in enumerate(objects, start=1)]
    ends = [isinstance(act, Done | Fail) for act in acts]
    if any(ends[:-1]):
        raise Refused("nothing may follow DONE or FAIL in a reply: put it last or leave it out")
    return acts


def _objects(reply: str) -> list[object]:
    text = reply.strip()
    if text in ("WAIT", "FAIL", "DONE"):
        return [{"action_type": text}]
    if text[:1] in ("{", "["):
        found, end = _decode(text, 0)
        if end < len(text):
            raise Refused(f"{_shown(text[end:])} stands after the JSON: put each action into a fenced block")
        return found
    blocks: list[tuple[str, list[object]]] = []
    position = 0
    while opening := _FENCE.search(text, position):
        language, found, position = _block(text, opening)
        blocks.append((language, found))
    if not blocks:
        raise Refused(f"no action: {_FORM}")
    marked = "json" if any(language == "json" for language, _ in blocks) else ""
    return [given for language, found in blocks if language == marked for given in found]


def _block(text: str, opening: re.Match[str]) -> tuple[str, list[object], int]:
    """Return a fenced block's language, its objects, and where it ends."""
    language = opening[1].lower()
    if word := _WORD.match(text, opening.start(1)):
        return "json", [{"action_type": word[1]}], word.end()
    if language not in ("", "json"):
        raise Refused(f"a block marked {language[:_SHOWN_CHARS]!r} is no action: {_FORM}")
    # The text to be typed may hold fences itself, so JSON's own end counts, not the next fence.
    found, end = _decode(text, opening.end())
    if not text.startswith("```", end):
        what = f"{_shown(text[end:])} stands after the JSON in a block" if end < len(text) else "a block is not closed"
        raise Refused(f"{what}: {_FORM}")
    return language, found, end + 3


def _decode(text: str, start: int) -> tuple[list[object], int]:
    """Return the objects that stand from `start` on, lists laid flat, and where something else follows."""
    found: list[object] = []
    end = start
    while text[end : end + 1] in ("{", "["):
        try:
            value, end = _decoder.raw_decode(text, end)
        except (ValueError, RecursionError) as exc:
            raise Refused(f"not JSON: {str(exc)[: _SHOWN_CHARS * 2]}, in {_shown(text[end:])}") from exc
        found += value if isinstance(value, list) else [value]
        gap = _GAP.match(text, end)
        end = gap.end() if gap else end
    if not found and end == start:
        raise Refused(f"{_shown(text[start:])} is no JSON object: {_FORM}")
    return found, end


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError(f"a name stands twice among {[name[:_SHOWN_CHARS] for name, _ in pairs][:MAX_ACTS]}")
    return dict(pairs)


_decoder = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_no_doubles)


def _act(given: object, which: str) -> Act:
    if not isinstance(given, dict) or not isinstance(given.get("action_type"), str):
        raise Refused(f"{which}: {_shown(json.dumps(given))} has no action_type: {_FORM}")
    kind = given["action_type"]
    if kind not in _MAKERS:
        near = difflib.get_close_matches(kind[:_SHOWN_CHARS].upper(), _MAKERS, n=1, cutoff=0.5)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise Refused(f"{which}: there is no {_shown(kind)}{meant}; action_type is one of {', '.join(_MAKERS)}")
    parameters = {name: value for name, value in given.items() if name != "action_type"}
    if isinstance(parameters.get("parameters"), dict) and len(parameters) == 1:
        parameters = parameters["parameters"]
    needed, optional, make = _MAKERS[kind]
    known = needed + optional
    if unknown := [name for name in parameters if name not in known]:
        raise Refused(f"{which}, {kind}: unknown parameter {_shown(unknown[0])}; it takes {', '.join(known) or 'none'}")
    try:
        _check(parameters, needed)
        return make(parameters)
    except Refused as refusal:
        raise Refused(f"{which}, {kind}: {refusal}") from refusal
    except ValidationError as exc:
        raise Refused(f"{which}, {kind}: {explain(exc)}") from exc


def _check(given: Given, needed: tuple[str, ...]) -> None:
    """Check what goes by the parameters' names; values that have a field of their own are checked there."""
    if "mark" in given and ("x" in given or "y" in given):
        raise Refused("give either mark or x and y, not both")
    if ("x" in given) != ("y" in given):
        raise Refused(f"{'y' if 'x' in given else 'x'} is missing: give both x and y, or neither")
    if "x" in needed and not {"x", "mark"} & given.keys():
        raise Refused("x and y are missing (or mark)")
    for name in needed:
        if name not in given and name not in _PLACE:
            raise Refused(f"{name} is missing: {_EXPECTED[name]}")
    for name, value in given.items():
        if not _IS[name](value):
            raise Refused(f"{name} must be {_EXPECTED[name]}, not {_shown(json.dumps(value))}")
    if "clicks" in given and given.keys() & {"dx", "dy"}:
        raise Refused("give either clicks or dx and dy, not both")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(min(value, 1e300))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_PLACE = ("x", "y", "mark")
_EXPECTED = {
    "x": "a number of pixels from the left edge",
    "y": "a number of pixels from the top edge",
    "mark": "the number of a mark",
    "button": "one of left, middle, right",
    "num_clicks": "1, 2 or 3",
    "clicks": "a whole number, up is positive",
    "dx": "a whole number, right is positive",
    "dy": "a whole number, up is positive",
    "text": "a string",
    "key": "the name of a key, as a string",
    "keys": 'a list of keys, such as ["ctrl", "s"]',
}
_IS: dict[str, Callable[[object], bool]] = {
    **dict.fromkeys(("x", "y"), _is_number),
    "mark": _is_whole,
    "button": lambda value: value in ("left", "middle", "right"),
    "num_clicks": lambda value: _is_whole(value) and value in (1, 2, 3),
    "clicks": _is_whole,
    **dict.fromkeys(("dx", "dy"), _is_whole),
    **dict.fromkeys(("text", "key"), lambda value: isinstance(value, str)),
    "keys": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
}


def _needed_place(given: Given) -> Place:
    return Mark(mark=given["mark"]) if "mark" in given else Pixels(x=given["x"], y=given["y"])


def _place(given: Given) -> Place | None:
    return _needed_place(given) if given.keys() & set(_PLACE) else None


def _click(given: Given) -> Act:
    return Click(button=given.get("button", "left"), clicks=given.get("num_clicks", 1), place=_place(given))


def _scroll(given: Given) -> Act:
    if not given:
        raise Refused("dx and dy are missing: whole numbers, right and up are positive")
    return Scroll(dy=given.get("clicks", given.get("dy", 0)), dx=given.get("dx", 0))


_MAKERS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[Given], Act]]] = {
    "MOVE_TO": (("x", "y"), ("mark",), lambda given: MoveTo(place=_needed_place(given))),
    "CLICK": ((), ("button", *_PLACE, "num_clicks"), _click),
    "MOUSE_DOWN": ((), ("button",), lambda given: ButtonDown(button=given.get("button", "left"))),
    "MOUSE_UP": ((), ("button",), lambda given: ButtonUp(button=given.get("button", "left"))),
    "RIGHT_CLICK": ((), _PLACE, lambda given: Click(button="right", place=_place(given))),
    "DOUBLE_CLICK": ((), _PLACE, lambda given: Click(clicks=2, place=_place(given))),
    "DRAG_TO": (("x", "y"), ("mark",), lambda given: DragTo(place=_needed_place(given))),
    "SCROLL": ((), ("dx", "dy", "clicks"), _scroll),
    "TYPING": (("text",), (), lambda given: Typing(text=given["text"])),
    "PRESS": (("key",), (), lambda given: Press(key=given["key"])),
    "KEY_DOWN": (("key",), (), lambda given: KeyDown(key=given["key"])),
    "KEY_UP": (("key",), (), lambda given: KeyUp(key=given["key"])),
    "HOTKEY": (("keys",), (), lambda given: Hotkey(keys=tuple(given["keys"]))),
    "WAIT": ((), (), lambda _: Wait()),
    "FAIL": ((), (), lambda _: Fail()),
    "DONE": ((), (), lambda _: Done()),
}


def _shown(text: str) -> str:
    return repr(text[:_SHOWN_CHARS] + ("..." if len(text) > _SHOWN_CHARS else ""))
