"""One line of a trial's trajectory.jsonl for each step of its agent."""

from typing import Literal

from deskfork.core.config import StrictModel
from deskfork.records.trial import TokenUsage

ActionClass = Literal["gui", "code", "mixed", "none"]
"""gui: drives the desktop only (pyautogui and waiting); code: never does; mixed: both; none: no action was parsed."""


class StepRecord(StrictModel):
    """One turn of the agent: what the model said, what was done, what came back."""

    step: int
    """From 1."""
    model_output: str
    code: str | None
    action: ActionClass
    stdout: str
    stderr: str
    error: str | None
    """The cell's exception or the parse error, with traceback, as the agent saw it."""
    timed_out: bool = False
    is_final: bool = False
    screen: str | None = None
    """Path of the screenshot taken after the step, relative to the trial's folder."""
    tokens: TokenUsage = TokenUsage()
    model_s: float
    guest_s: float
    observe_s: float
    framework_s: float
    """The step's time that is neither the model's, nor the guest's, nor the observation's."""
