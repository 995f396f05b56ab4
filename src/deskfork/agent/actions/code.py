"""Action space `code`: Python in a stateful kernel, without the desktop."""

from typing import Any

from deskfork.agent.actions.code_agent import code_agent
from deskfork.agent.actions.guards import check_code
from deskfork.agent.actions.space import ActionSpace, Parts, load_prompt
from deskfork.agent.prelude import NO_GUI


def build(parts: Parts) -> Any:
    """Return the agent; code that names the desktop is refused, and the kernel has no display."""
    parts.hands.prepare(NO_GUI)
    return code_agent(parts, check_code)


SPACE = ActionSpace(
    name="code",
    summary="the same without the desktop: PyAutoGUI, programs that drive windows and the display are refused",
    source="ablation of code+gui",
    prompt=load_prompt("code"),
    build=build,
    observe=("terminal",),
    impossible={"som": "its marks are there to be clicked, and this action space has no pointer"},
)
