"""Where on the screen an agent's actions go, as far as they name the place: read from the actions, never run."""

import json
from collections.abc import Iterator

from deskfork.agent.actions.acts import Act, ButtonDown, ButtonUp, Click, DragTo, Mark, MoveTo, Pixels, Scroll, act_of
from deskfork.agent.actions.refusal import Refused
from deskfork.core.config import StrictModel
from deskfork.viewer.pointer_calls import Did, Kind, Point, PointerCalls, label, turned

MAX_SPOTS = 40
"""Places that are told of one step."""
MAX_CODE_CHARS = 64 * 1024
"""Longer actions are not looked through."""


class Spot(StrictModel):
    """Something that the pointer did, in pixels of the picture that the agent was shown."""

    kind: Kind
    x: float
    y: float
    start: Point | None = None
    """Where a drag began, if that is known."""
    label: str = ""
    """Such as `right` or `double`; empty for one left click."""


class PointerTrail:
    """Follows the pointer through a trial's actions, in order."""

    def __init__(self) -> None:
        self.place: Point | None = None
        """Where it is now; None when that cannot be told."""
        self._calls = PointerCalls()

    def follow(self, code: str | None, *, is_refused: bool = False) -> tuple[Spot, ...]:
        """Return where the next action goes. Never raises.

        Args:
            code: As in StepRecord.code: Python, or one JSON object a line.
            is_refused: It was not done, so that the pointer stays where it was.
        """
        before = self.place
        spots: list[Spot] = []
        for did in self._dids(code or ""):
            spot = self._moved(did)
            if spot is not None and len(spots) < MAX_SPOTS:
                spots.append(spot)
        if is_refused:
            self.place = before
        return tuple(spots)

    def _dids(self, code: str) -> Iterator[Did]:
        if len(code) > MAX_CODE_CHARS:
            yield Did("move", None, is_unknown=True)
        elif code.lstrip().startswith("{"):
            yield from _of_acts(code)
        else:
            yield from self._calls.of(code)

    def _moved(self, did: Did) -> Spot | None:
        start = did.start or self.place
        target = did.place
        if did.is_unknown:
            target = None
        elif did.is_relative:
            target = (start[0] + target[0], start[1] + target[1]) if start and target else None
        elif target is None:
            target = self.place
        self.place = target
        if target is None:
            return None
        return Spot(
            kind=did.kind, x=target[0], y=target[1], label=did.label, start=start if did.kind == "drag" else None
        )


def _of_acts(code: str) -> Iterator[Did]:
    for line in code.split("\n"):
        try:
            values = json.loads(line)
            act = act_of(values) if isinstance(values, dict) else None
        except (ValueError, RecursionError, Refused):
            continue
        if act is not None:
            yield from _of_act(act)


def _of_act(act: Act) -> Iterator[Did]:
    place = getattr(act, "place", None)
    point, is_unknown = _pixels(place), isinstance(place, Mark)
    match act:
        case MoveTo():
            yield Did("move", point, is_unknown=is_unknown)
        case Click():
            yield Did("click", point, label(act.button, act.clicks), is_unknown=is_unknown)
        case ButtonDown():
            yield Did("press", None, label(act.button, 1))
        case ButtonUp():
            yield Did("release", None, label(act.button, 1))
        case DragTo():
            if isinstance(act.start, Mark):
                yield Did("move", None, is_unknown=True)
            yield Did("drag", point, label(act.button, 1), _pixels(act.start), is_unknown=is_unknown)
        case Scroll():
            yield Did("scroll", point, turned(act.dy, act.dx), is_unknown=is_unknown)


def _pixels(place: object) -> Point | None:
    return (float(place.x), float(place.y)) if isinstance(place, Pixels) else None
