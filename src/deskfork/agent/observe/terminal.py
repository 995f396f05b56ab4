"""Observation `terminal`: what the last cell or command printed and displayed."""

from typing import Any

from deskfork.agent.observe.base import NoOptions, Scene, StepCallback


class Terminal:
    """Lets the agent see its acts' output; errors it sees without it, too."""

    def __init__(self, _options: NoOptions, scene: Scene) -> None:
        scene.hands.shows_output = True

    def before(self, task_step: Any) -> None:
        """Add nothing: nothing has been printed yet."""

    def __call__(self, memory_step: Any, agent: Any) -> None:
        """Add nothing: the act's own observation holds its output."""


CALLBACK = StepCallback(
    name="terminal",
    summary="what the last cell or command printed and displayed",
    told="what the code printed or displayed",
    build=Terminal,
)
