"""Action space `computer`: tool calls for mouse, keyboard and screen, as computer-use models make them."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from deskfork.agent.actions import keys
from deskfork.agent.actions.acts import Act, act_of
from deskfork.agent.actions.performing import note, perform
from deskfork.agent.actions.space import ActionSpace, Parts, load_prompt
from deskfork.agent.actions.tool_agent import GuestTool, ToolAgent
from deskfork.agent.observe.base import add_image

_X = {"type": "number", "description": "pixels from the left edge of the picture", "nullable": True}
_Y = {"type": "number", "description": "pixels from its top edge", "nullable": True}
_MARK = {"type": "integer", "description": "number of a mark on the picture, in the place of x and y", "nullable": True}
_PLACE = {"x": _X, "y": _Y, "mark": _MARK}
_WHERE = "; where the pointer is, if no place is given"


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def place_of(given: Mapping[str, Any], x: str = "x", y: str = "y") -> dict[str, Any] | None:
    """Return the place that a call's arguments name, None when they name none; what is odd is left to the act."""
    found = {name: given[key] for name, key in (("x", x), ("y", y), ("mark", "mark")) if key in given}
    return found or None


def _clicking(button: str, clicks: int) -> Callable[[Mapping[str, Any]], Act]:
    return lambda given: act_of({"act": "click", "button": button, "clicks": clicks, "place": place_of(given)})


def _dragging(given: Mapping[str, Any]) -> Act:
    start = place_of({name: given[name] for name in ("start_x", "start_y") if name in given}, "start_x", "start_y")
    return act_of({"act": "drag_to", "place": place_of(given), "start": start})


def _scrolling(given: Mapping[str, Any]) -> Act:
    return act_of({"act": "scroll", "dy": given.get("dy", 0), "dx": given.get("dx", 0), "place": place_of(given)})


# Name, what the model is told, arguments, and the act that a call means.
_TOOLS: tuple[tuple[str, str, dict[str, Any], Callable[[Mapping[str, Any]], Act]], ...] = (
    ("mouse_move", "Move the pointer.", _PLACE, lambda given: act_of({"act": "move_to", "place": place_of(given)})),
    ("left_click", f"Click the left button{_WHERE}.", _PLACE, _clicking("left", 1)),
    ("right_click", f"Click the right button{_WHERE}.", _PLACE, _clicking("right", 1)),
    ("double_click", f"Click the left button twice{_WHERE}.", _PLACE, _clicking("left", 2)),
    (
        "left_click_drag",
        "Drag with the left button to a place, from where the pointer is or from a start.",
        {
            **_PLACE,
            "start_x": {"type": "number", "description": "where to start", "nullable": True},
            "start_y": {"type": "number", "description": "where to start", "nullable": True},
        },
        _dragging,
    ),
    ("type", "Type a text.", {"text": _text("what to type")}, lambda given: act_of({"act": "typing", **given})),
    (
        "key",
        "Press a key, or several together.",
        {"keys": _text("such as Return, ctrl+s, alt+F4")},
        lambda given: act_of({"act": "hotkey", "keys": keys.chord(str(given["keys"]))}),
    ),
    (
        "scroll",
        f"Turn the wheel{_WHERE}.",
        {
            "dy": {"type": "integer", "description": "clicks of the wheel, up is positive", "nullable": True},
            "dx": {"type": "integer", "description": "clicks sideways, right is positive", "nullable": True},
            **_PLACE,
        },
        _scrolling,
    ),
    (
        "wait",
        "Wait while something loads.",
        {"seconds": {"type": "number", "description": "how long, at most 60"}},
        lambda given: act_of({"act": "wait", **given}),
    ),
)


def computer_tools(parts: Parts, pictures: list[Any]) -> list[GuestTool]:
    """Return the tools of mouse, keyboard and screen; `pictures` gets the screenshots that the agent asks for."""

    def doing(act: Callable[[Mapping[str, Any]], Act]) -> Callable[[dict[str, Any]], str]:
        def do(given: dict[str, Any]) -> str:
            perform([act(given)], parts)
            return "done"

        return do

    def locate(_: dict[str, Any]) -> str:
        note(parts.hands.acted, json.dumps({"act": "cursor_position"}), "gui")
        state = parts.hands.guest.desktop()
        x, y = parts.view.shown(state.pointer_x, state.pointer_y)
        return f"the pointer is at ({x}, {y})"

    def look(_: dict[str, Any]) -> str:
        note(parts.hands.acted, json.dumps({"act": "screenshot"}), "gui")
        pictures.append(parts.look())
        return "the screenshot is attached"

    return [
        *(GuestTool(name, told, inputs, doing(act)) for name, told, inputs, act in _TOOLS),
        GuestTool("cursor_position", "Tell where the pointer is.", {}, locate),
        GuestTool("screenshot", "Show the screen as it is now.", {}, look),
    ]


class ComputerAgent(ToolAgent):
    """A ToolAgent that is shown the screenshots it asked for."""

    def __init__(self, parts: Parts, tools: Callable[[Parts, list[Any]], list[GuestTool]]) -> None:
        self._pictures: list[Any] = []
        super().__init__(parts, tools(parts, self._pictures))

    def process_tool_calls(self, chat_message: Any, memory_step: Any) -> Any:
        """Do a reply's calls, and attach the pictures that they took."""
        self._pictures.clear()
        try:
            yield from super().process_tool_calls(chat_message, memory_step)
        finally:
            for picture in self._pictures:
                add_image(memory_step, picture)


def build(parts: Parts) -> Any:
    """Return the agent."""
    return ComputerAgent(parts, computer_tools)


SPACE = ActionSpace(
    name="computer",
    summary="tool calls: mouse_move, left/right/double_click, left_click_drag, type, key, scroll, cursor_position, "
    "screenshot, wait",
    source="computer-use models; Programming with Pixels, category 1",
    prompt=load_prompt("computer"),
    build=build,
    observe=("screenshot",),
    impossible={"terminal": "its tools answer by themselves, and print nothing"},
    answers=("what each tool answers",),
)
