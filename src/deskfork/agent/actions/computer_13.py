"""Action space `computer_13`: the structured actions of OSWorld and Spider2-V, in fenced JSON."""

from typing import Any

from deskfork.agent.actions.acts import Done, Fail
from deskfork.agent.actions.fenced_agent import FencedAgent, Outcome
from deskfork.agent.actions.json_acts import parse_computer_13
from deskfork.agent.actions.performing import perform
from deskfork.agent.actions.space import ActionSpace, Parts, load_prompt


def act(reply: str, parts: Parts) -> Outcome:
    """Do what a reply says; all of its actions are checked before the first is done."""
    acts = parse_computer_13(reply)
    perform(acts, parts)
    if acts and isinstance(acts[-1], Done | Fail):
        return Outcome(answer="DONE" if isinstance(acts[-1], Done) else "FAIL")
    return Outcome()


def build(parts: Parts) -> Any:
    """Return the agent."""
    return FencedAgent(parts, act)


SPACE = ActionSpace(
    name="computer_13",
    summary="sixteen structured actions in JSON (MOVE_TO, CLICK, ... HOTKEY, WAIT, FAIL, DONE), parameters checked",
    source="OSWorld and Spider2-V (COMPUTER_13)",
    prompt=load_prompt("computer_13"),
    build=build,
    observe=("screenshot",),
    impossible={"terminal": "its actions print nothing"},
)
