"""Observation `a11y_tree`: the elements on the screen, as the programs tell them to assistive technology (AT-SPI)."""

from typing import Any

from pydantic import Field

from deskfork.agent.observe.base import Scene, StepCallback, add_text
from deskfork.agent.observe.tree import table, telling
from deskfork.core.config import StrictModel


class TreeOptions(StrictModel):
    """How much of the tree is told."""

    tokens: int = Field(default=5000, ge=100)
    """About how many it may take; Spider2-V's own budget by default."""


class AccessibilityTable:
    """Adds the elements to each step's text."""

    def __init__(self, options: TreeOptions, scene: Scene) -> None:
        self._options = options
        self._scene = scene

    def before(self, task_step: Any) -> None:
        """Add the elements to the task."""
        add_text(task_step, self._table())

    def __call__(self, memory_step: Any, agent: Any) -> None:
        """Add the elements after the step's output."""
        add_text(memory_step, self._table())

    def _table(self) -> str:
        tree = self._scene.guest.accessibility()
        rows = [(node.role, node) for node in telling(tree.nodes)]
        text = table(rows, self._scene.view, first="role", tokens=self._options.tokens)
        partial = "\n[Some programs did not answer: their elements are missing]" if tree.is_partial else ""
        return f"Elements on the screen:\n{text}{partial}"


CALLBACK = StepCallback(
    name="a11y_tree",
    summary="the elements on the screen by role, name, text, place and state, from the accessibility tree",
    told="a table of the elements on the screen",
    build=AccessibilityTable,
    options=TreeOptions,
)
