"""Measuring what a step costs an agent: deskfork's own part in each action space, and each way of looking."""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PIL.Image import Image

from deskfork.agent.build import run_agent
from deskfork.agent.config import ModelAgentConfig, Named, parse_agent
from deskfork.agent.limits import Limits
from deskfork.bench.figures import Figure
from deskfork.core.config import StrictModel
from deskfork.records.trajectory import StepRecord
from deskfork.sandbox.base import Guest, SandboxProvider

STEPS = 20
LOOKS = 5
# One harmless act in each action space: what a model might say.
_REPLIES: dict[str, object] = {
    "code+gui": "<code>\nprint(1)\n</code>",
    "code": "<code>\nprint(1)\n</code>",
    "pyautogui": "```python\npyautogui.moveTo(640, 400)\n```",
    "computer_13": '```json\n{"action_type": "MOVE_TO", "x": 640, "y": 400}\n```',
    "computer": {"tool_calls": [{"name": "mouse_move", "arguments": {"x": 640, "y": 400}}]},
    "computer+tools": {"tool_calls": [{"name": "bash", "arguments": {"command": "true"}}]},
}
_OBSERVATIONS = ("screenshot", "text_only", "a11y_tree", "som")


class AgentFigures(StrictModel):
    """What steps cost, on a desktop with JupyterLab open."""

    framework_ms: dict[str, Figure]
    """By action space: what of a step is neither the model's, nor the guest's, nor the observation's."""
    act_ms: dict[str, Figure]
    """By action space: what the act itself took in the guest."""
    observe_ms: dict[str, Figure]
    """By observation: looking after a step, everything that belongs to it included."""
    first_accessibility_ms: float
    """The first look at the accessibility tree, for which programs have to make theirs."""


class _NoScreens:
    """Drops screenshots: writing them is the records' work, on another thread."""

    def save(self, image: Image, step: int) -> str:
        """Return a name without keeping `image`."""
        return f"{step}-{image.width}x{image.height}"


def framework_seconds(guest: Guest, space: str = "code+gui") -> list[float]:
    """Run an agent of trivial steps; return, for each but the first, what was not the model's, guest's or screen's."""
    return [record.framework_s for record in _steps(guest, space, None, STEPS)[1:]]


def bench_agents(provider: SandboxProvider, say: Callable[[str], None]) -> AgentFigures:
    """Measure each action space and each observation.

    Args:
        provider: Opened by the caller; its `jupyter` template must be built.
        say: Told what is being measured.

    Raises:
        SandboxError: No desktop could be forked.
        TransportError: The guest did not answer as agreed.
    """
    own, acts, looks = {}, {}, {}
    for space in _REPLIES:
        say(f"action space {space}")
        with provider.fork("jupyter") as sandbox:
            records = _steps(sandbox, space, None, STEPS)[1:]
        own[space] = Figure.of([1000 * record.framework_s for record in records])
        acts[space] = Figure.of([1000 * record.guest_s for record in records])
    for name in _OBSERVATIONS:
        say(f"observation {name}")
        with provider.fork("jupyter") as sandbox:
            records = _steps(sandbox, "code+gui", name, LOOKS + 1)[1:]
        looks[name] = Figure.of([1000 * record.observe_s for record in records])
    with provider.fork("jupyter") as sandbox:
        begun_at = time.monotonic()
        sandbox.accessibility()
        first = 1000 * (time.monotonic() - begun_at)
    return AgentFigures(framework_ms=own, act_ms=acts, observe_ms=looks, first_accessibility_ms=round(first, 3))


def _steps(guest: Guest, space: str, observe: str | None, steps: int) -> list[StepRecord]:
    """Run a script of `steps` equal acts; `observe` None leaves the action space its own observations."""
    records: list[StepRecord] = []
    with tempfile.TemporaryDirectory(prefix="deskfork-bench-") as folder:
        script = Path(folder) / "script.jsonl"
        script.write_text("\n".join([json.dumps(_REPLIES[space])] * steps), encoding="utf-8")
        config = parse_agent(space, f"scripted:{script}")
        if observe is not None and isinstance(config, ModelAgentConfig):
            config = config.model_copy(update={"observe": (Named(name=observe),)})
        run_agent(
            config,
            instruction="Do the same again.",
            guest=guest,
            solution_cells=None,
            limits=Limits(steps=steps),
            screens=_NoScreens(),
            on_step=records.append,
        )
    return records
