"""Action space `code+gui`: Python in a stateful kernel that also drives the desktop."""

from deskfork.agent.actions.code_agent import code_agent
from deskfork.agent.actions.space import ActionSpace, load_prompt

SPACE = ActionSpace(
    name="code+gui",
    summary="Python in a stateful kernel in the guest, PyAutoGUI included; final_answer() ends it",
    source="the thesis's CodeAgent",
    prompt=load_prompt("code+gui"),
    build=code_agent,
    observe=("screenshot", "terminal"),
)
