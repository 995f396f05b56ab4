"""Observation `text_only`: in words where the pointer is and which windows are open, for models that take no images."""

from typing import Any

from deskfork.agent.observe.base import NoOptions, Scene, StepCallback, add_text
from deskfork.agent.text import one_line

MAX_WINDOWS = 40
MAX_TITLE_CHARS = 120


class TextOnly:
    """Adds the list of windows to each step's text."""

    def __init__(self, _options: NoOptions, scene: Scene) -> None:
        self._scene = scene

    def before(self, task_step: Any) -> None:
        """Add the list to the task."""
        add_text(task_step, self._listing())

    def __call__(self, memory_step: Any, agent: Any) -> None:
        """Add the list after the step's output."""
        add_text(memory_step, self._listing())

    def _listing(self) -> str:
        state = self._scene.guest.desktop()
        view = self._scene.view
        (width, height), pointer = view.shown_px, view.shown(state.pointer_x, state.pointer_y)
        lines = [f"Screen {width}x{height}, pointer at {pointer}. Windows:"]
        for window in state.windows[:MAX_WINDOWS]:
            size = "x".join(map(str, view.shown(window.width_px, window.height_px)))
            title = one_line(window.title, MAX_TITLE_CHARS)
            lines.append(
                f"- {title!r} {size} at {view.shown(window.x, window.y)}{', active' if window.is_active else ''}"
            )
        return "\n".join(lines if state.windows else [*lines, "- none"])


CALLBACK = StepCallback(
    name="text_only",
    summary="no picture: the pointer and the list of windows, in words",
    told="the list of open windows",
    build=TextOnly,
    excludes=("screenshot", "som"),
)
