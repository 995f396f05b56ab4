"""Observation `screenshot`: the screen with its pointer, at the size that the model can take."""

from typing import Any

from PIL import Image

from deskfork.agent.observe.base import NoOptions, Scene, StepCallback, add_image
from deskfork.agent.view import View


class Screenshot:
    """Attaches the screen to each step; the context policy takes older ones out again."""

    def __init__(self, _options: NoOptions, scene: Scene) -> None:
        self._scene = scene

    def before(self, task_step: Any) -> None:
        """Attach the initial screen to the task."""
        add_image(task_step, self._picture())

    def __call__(self, memory_step: Any, agent: Any) -> None:
        """Attach the screen to the step; its text is not touched."""
        add_image(memory_step, self._picture())

    def _picture(self) -> Image.Image:
        return self._scene.camera.show(shrunk(self._scene.camera.latest, self._scene.view))


def shrunk(image: Image.Image, view: View) -> Image.Image:
    """Return the picture at the size in which the model sees the screen."""
    if image.size == view.shown_px:
        return image
    return image.resize(view.shown_px, Image.Resampling.LANCZOS)


CALLBACK = StepCallback(
    name="screenshot",
    summary="a picture of the screen with its pointer",
    told="a screenshot",
    build=Screenshot,
    has_images=True,
)
