"""One line of a trial's trajectory.jsonl for each step of its agent."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from deskfork.core.config import StrictModel
from deskfork.records.trial import TokenUsage

LineClass = Literal["gui", "code", "shell", "file", "wait"]
"""gui: drives the desktop; shell: runs a program; file: reads or writes files; wait: waits; code: anything else."""
ActionClass = Literal["gui", "code", "shell", "file", "wait", "mixed", "none"]
"""The class that a step's lines agree on, where waiting agrees with any; mixed: they differ; none: nothing was parsed.

Imports, prints, loops and plain assignments agree with anything; a step of nothing else is code.
"""


def action_class(lines: Mapping[LineClass, int]) -> ActionClass:
    """Return the class of a step from its lines: waiting belongs to whatever else was done."""
    kinds = {kind for kind, count in lines.items() if count}
    if len(kinds) > 1:
        kinds.discard("wait")
    return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "none"


class ToolCallRecord(StrictModel):
    """One tool call, as the model made it."""

    name: str
    arguments: Any = None
    """JSON: an object, where the model kept to the agreed form."""


class StepRecord(StrictModel):
    """One turn of the agent: what the model said, what was done, what came back."""

    step: int
    """From 1."""
    model_output: str
    """What the model said, raw."""
    tool_calls: tuple[ToolCallRecord, ...] = ()
    code: str | None
    """The parsed action: Python, or for structured actions one JSON object a line; None when nothing was parsed."""
    action: ActionClass
    lines: dict[LineClass, int] = Field(default_factory=dict)
    """Lines of what was done, by what they do; the thesis's PyAutoGUI line ratio is gui by their sum."""
    refused: str | None = None
    """Why the action space did not let the agent do what it wanted; None when it did."""
    stdout: str
    stderr: str
    error: str | None
    """The cell's exception or the parse error, with traceback, as the agent saw it."""
    timed_out: bool = False
    is_final: bool = False
    screen: str | None = None
    """Path of the screenshot taken after the step, relative to the trial's folder."""
    tokens: TokenUsage | None = TokenUsage()
    """None when the model did not tell."""
    is_cached: bool = False
    """The answer came from the cache; its tokens are those of when it was made."""
    images_dropped: int = 0
    """Pictures of earlier steps that the model was not shown again in this one."""
    steps_cut: int = 0
    """Earlier steps that it was told of in short, or no more."""
    model_s: float
    guest_s: float
    observe_s: float
    framework_s: float
    """The step's time that is neither the model's, nor the guest's, nor the observation's."""
