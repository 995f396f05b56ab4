"""What an agent can do to the desktop, each act checked, and where on the real screen it goes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, StrictStr, TypeAdapter, ValidationError

from deskfork.agent.actions import keys
from deskfork.agent.actions.refusal import Refused
from deskfork.core.config import StrictModel

MAX_TEXT_CHARS = 10_000
MAX_WHEEL_CLICKS = 100
MAX_WAIT_S = 60.0
MAX_ANSWER_CHARS = 64 * 1024
MAX_TOLD_CHARS = 500
_FAR = 1_000_000
_SHOWN_MARKS = 20

Button = Literal["left", "middle", "right"]
Number = Annotated[int, Field(strict=True)] | Annotated[float, Field(strict=True, allow_inf_nan=False)]
Key = Annotated[StrictStr, AfterValidator(keys.key)]
WheelClicks = Annotated[int, Field(strict=True, ge=-MAX_WHEEL_CLICKS, le=MAX_WHEEL_CLICKS)]


class Pixels(StrictModel):
    """A place in the picture that the model saw; once `placed`, whole pixels of the real screen."""

    x: Annotated[Number, Field(ge=-_FAR, le=_FAR)]
    """From the left edge."""
    y: Annotated[Number, Field(ge=-_FAR, le=_FAR)]
    """From the top edge."""


class Mark(StrictModel):
    """A place by the number of a box that was drawn into the picture."""

    mark: int = Field(strict=True, ge=0, le=_FAR)


Place = Pixels | Mark


class MoveTo(StrictModel):
    """Move the pointer."""

    act: Literal["move_to"] = "move_to"
    place: Place


class Click(StrictModel):
    """Click, where the pointer is if no place is given."""

    act: Literal["click"] = "click"
    button: Button = "left"
    clicks: int = Field(default=1, strict=True, ge=1, le=5)
    place: Place | None = None


class ButtonDown(StrictModel):
    """Press a mouse button and hold it."""

    act: Literal["button_down"] = "button_down"
    button: Button = "left"


class ButtonUp(StrictModel):
    """Release a mouse button."""

    act: Literal["button_up"] = "button_up"
    button: Button = "left"


class DragTo(StrictModel):
    """Press a button, move and release; from where the pointer is if no start is given."""

    act: Literal["drag_to"] = "drag_to"
    place: Place
    button: Button = "left"
    start: Place | None = None


class Scroll(StrictModel):
    """Turn the wheel."""

    act: Literal["scroll"] = "scroll"
    dy: WheelClicks = 0
    """Clicks of the wheel; up is positive, as for PyAutoGUI's `scroll`."""
    dx: WheelClicks = 0
    """Clicks sideways; right is positive, as for its `hscroll`."""
    place: Place | None = None


class Typing(StrictModel):
    """Type text, as it can be typed on a US keyboard."""

    act: Literal["typing"] = "typing"
    text: Annotated[StrictStr, Field(max_length=MAX_TEXT_CHARS), AfterValidator(keys.typable)]


class Press(StrictModel):
    """Press a key and release it."""

    act: Literal["press"] = "press"
    key: Key


class KeyDown(StrictModel):
    """Press a key and hold it."""

    act: Literal["key_down"] = "key_down"
    key: Key


class KeyUp(StrictModel):
    """Release a key."""

    act: Literal["key_up"] = "key_up"
    key: Key


class Hotkey(StrictModel):
    """Press keys in order and release them in reverse."""

    act: Literal["hotkey"] = "hotkey"
    keys: Annotated[tuple[StrictStr, ...], AfterValidator(keys.together)]


class Wait(StrictModel):
    """Do nothing for a while."""

    act: Literal["wait"] = "wait"
    seconds: Annotated[Number, Field(ge=0, le=MAX_WAIT_S)] = 2.0


class Done(StrictModel):
    """Say that the task is done; nothing is done in the guest."""

    act: Literal["done"] = "done"
    answer: str = Field(default="", max_length=MAX_ANSWER_CHARS)


class Fail(StrictModel):
    """Say that the task cannot be done; nothing is done in the guest."""

    act: Literal["fail"] = "fail"
    reason: str = Field(default="", max_length=MAX_ANSWER_CHARS)


Act = Annotated[
    MoveTo | Click | ButtonDown | ButtonUp | DragTo | Scroll | Typing | Press | KeyDown | KeyUp | Hotkey | Wait | Done
    | Fail,
    Field(discriminator="act"),
]  # fmt: skip
"""Any act. Making one of a key or text that cannot be pressed raises Refused; other bad values, a ValidationError."""
_adapter: TypeAdapter[Any] = TypeAdapter(Act)


@dataclass(frozen=True)
class Frame:
    """How the picture that the model saw lies on the real screen."""

    width_px: int
    """Of the real screen."""
    height_px: int
    scale: tuple[float, float] = (1.0, 1.0)
    """Real pixels per pixel of the picture, across and down."""
    marks: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Centres of the numbered boxes, in real pixels."""


def act_of(values: Mapping[str, object]) -> Act:
    """Return the act that a mapping describes, its kind under `act`.

    Raises:
        Refused: It describes none; the text says which field is wrong and what it should be.
    """
    try:
        act: Act = _adapter.validate_python(values)
    except ValidationError as exc:
        raise Refused(f"{str(values.get('act', 'act'))[:40]}: {explain(exc)}") from exc
    return act


def explain(error: ValidationError) -> str:
    """Return what is wrong, field by field, in one line."""
    told = []
    for found in error.errors(include_url=False, include_input=False):
        where = [str(part) for part in found["loc"] if part not in _UNION_PARTS]
        told.append(f"{'.'.join(where)}: {found['msg']}" if where else found["msg"])
    return "; ".join(dict.fromkeys(told))[:MAX_TOLD_CHARS]


# pydantic names a union's members and tags on the way to a field; they are ours, not the model's.
_UNION_PARTS = {"Pixels", "Mark", "int", "float"} | {
    kind.model_fields["act"].default for kind in get_args(get_args(Act)[0])
}


def placed(act: Act, frame: Frame) -> Act:
    """Return the act with its places as whole pixels of the real screen.

    Raises:
        Refused: A place is off the screen, or names a mark that is not shown.
    """
    moved = {
        name: _placed(place, frame)
        for name in ("place", "start")
        if isinstance(place := getattr(act, name, None), Pixels | Mark)
    }
    return act.model_copy(update=moved) if moved else act


def _placed(place: Place, frame: Frame) -> Pixels:
    if isinstance(place, Mark):
        return _of_mark(place.mark, frame)
    x, y = place.x * frame.scale[0], place.y * frame.scale[1]
    if not (0 <= x < frame.width_px and 0 <= y < frame.height_px):
        width, height = math.ceil(frame.width_px / frame.scale[0]), math.ceil(frame.height_px / frame.scale[1])
        raise Refused(
            f"({place.x:g}, {place.y:g}) is off the screen: x goes from 0 to {width - 1} and y from 0 to {height - 1}"
        )
    return Pixels(x=min(round(x), frame.width_px - 1), y=min(round(y), frame.height_px - 1))


def _of_mark(mark: int, frame: Frame) -> Pixels:
    if not frame.marks:
        raise Refused(f"mark {mark} is not shown: the picture has no marks, give x and y")
    if mark not in frame.marks:
        shown = ", ".join(str(known) for known in sorted(frame.marks)[:_SHOWN_MARKS])
        more = f" and {len(frame.marks) - _SHOWN_MARKS} more" if len(frame.marks) > _SHOWN_MARKS else ""
        raise Refused(f"mark {mark} is not shown; shown are {shown}{more}")
    x, y = frame.marks[mark]
    if not (0 <= x < frame.width_px and 0 <= y < frame.height_px):
        raise Refused(f"mark {mark} is off the screen, at ({x}, {y})")
    return Pixels(x=x, y=y)
