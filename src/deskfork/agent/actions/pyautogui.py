"""Action space `pyautogui`: fenced Python that drives mouse and keyboard, each block in names of its own."""

import re
from collections import Counter
from typing import Any

from smolagents.utils import AgentExecutionError

from deskfork.agent.actions.acts import Done, Fail, Wait
from deskfork.agent.actions.blocks import parse_pyautogui
from deskfork.agent.actions.fenced_agent import FencedAgent, Outcome
from deskfork.agent.actions.guards import check_block
from deskfork.agent.actions.lines import LineClassifier
from deskfork.agent.actions.performing import perform, run_block
from deskfork.agent.actions.space import ActionSpace, Parts, load_prompt
from deskfork.agent.executor import SilentLogger, failure, printed

_MARK = re.compile(r"\bmark_(\d{1,6})\b")


def act(reply: str, parts: Parts) -> Outcome:
    """Do what a reply says; all of its blocks are checked before the first runs."""
    said = parse_pyautogui(reply)
    blocks = [block for block in said if isinstance(block, str)]
    acted = parts.hands.acted
    if blocks:
        acted.code = "\n".join(blocks)
        for block in blocks:
            check_block(block, parts.view.marks.keys())
        acted.lines += sum((Counter(LineClassifier().count(block)) for block in blocks), Counter())
        acted.action = LineClassifier().classify(acted.code)
    told: list[str] = []
    for part in said:
        if isinstance(part, Done | Fail):
            return Outcome("\n".join(told), answer="DONE" if isinstance(part, Done) else "FAIL")
        if isinstance(part, Wait):
            perform([part], parts)
        else:
            told.append(_run(part, parts))
    return Outcome("\n".join(filter(None, told)))


def _run(block: str, parts: Parts) -> str:
    result = run_block(block, parts, frozenset(int(number) for number in _MARK.findall(block)))
    if wrong := failure(result, parts.hands):
        raise AgentExecutionError(wrong, SilentLogger())
    shown = printed(result, parts.hands.limits.output_chars) if parts.hands.shows_output else ""
    return f"Printed:\n{shown}" if shown else ""


def build(parts: Parts) -> Any:
    """Return the agent."""
    return FencedAgent(parts, act)


SPACE = ActionSpace(
    name="pyautogui",
    summary="fenced Python with pyautogui and time alone, no state between blocks; WAIT, FAIL, DONE",
    source="Spider2-V (PYAUTOGUI), after OSWorld",
    prompt=load_prompt("pyautogui"),
    build=build,
    observe=("screenshot",),
)
