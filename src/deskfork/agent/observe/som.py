"""Observation `som` (set of marks): numbered boxes on the picture of the screen, around what can be acted upon."""

from typing import Any

from PIL import Image, ImageDraw
from pydantic import Field

from deskfork.agent.observe.base import Scene, StepCallback, add_image, add_text
from deskfork.agent.observe.screenshot import shrunk
from deskfork.agent.observe.tree import actable, centre, table
from deskfork.core.config import StrictModel
from deskfork.core.types import AccessibleNode

MAX_MARKS = 300
_COLOURS = ("#d32f2f", "#1565c0", "#2e7d32", "#6a1b9a", "#e65100", "#00695c")


class MarkOptions(StrictModel):
    """How much is told of the marks."""

    tokens: int = Field(default=2500, ge=100)
    """About how many the table of the marks may take."""


class SetOfMarks:
    """Attaches the marked screen to each step, and the table of its marks."""

    def __init__(self, options: MarkOptions, scene: Scene) -> None:
        self._options = options
        self._scene = scene

    def before(self, task_step: Any) -> None:
        """Attach the marked screen to the task."""
        self._mark(task_step)

    def __call__(self, memory_step: Any, agent: Any) -> None:
        """Attach the marked screen to the step."""
        self._mark(memory_step)

    def _mark(self, step: Any) -> None:
        scene = self._scene
        tree = scene.guest.accessibility()
        nodes = dict(enumerate(actable(tree.nodes)[:MAX_MARKS], start=1))
        scene.view.marks = {number: centre(node, scene.view) for number, node in nodes.items()}
        add_image(step, scene.camera.show(shrunk(marked(scene.camera.latest, nodes), scene.view)))
        rows = [(str(number), node) for number, node in nodes.items()]
        add_text(step, "Marks on the picture:\n" + table(rows, scene.view, first="mark", tokens=self._options.tokens))


def marked(screen: Image.Image, nodes: dict[int, AccessibleNode]) -> Image.Image:
    """Return a copy of the screen with a numbered box around each node."""
    picture = screen.convert("RGB")
    draw = ImageDraw.Draw(picture)
    for number, node in nodes.items():
        colour = _COLOURS[number % len(_COLOURS)]
        box = (node.x, node.y, node.x + node.width_px - 1, node.y + node.height_px - 1)
        draw.rectangle(box, outline=colour)
        left, top = max(0, node.x), max(0, node.y)
        label = draw.textbbox((left + 1, top), str(number))
        draw.rectangle((label[0] - 1, label[1] - 1, label[2] + 1, label[3] + 1), fill=colour)
        draw.text((left + 1, top), str(number), fill="white")
    return picture


CALLBACK = StepCallback(
    name="som",
    summary="the screen with numbered boxes around what can be acted upon; acts may name a mark",
    told="a screenshot with numbered marks, and the table of the marks",
    build=SetOfMarks,
    options=MarkOptions,
    has_images=True,
    excludes=("screenshot", "text_only"),
)
