"""What an agent gets to see besides its cells' output: step callbacks, chosen by configuration."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, Protocol

from PIL.Image import Image
from pydantic import Field

from deskfork.agent.meter import StepMeter
from deskfork.core.config import StrictModel
from deskfork.core.tracing import span
from deskfork.sandbox.base import Guest

MAX_WINDOWS = 40
MAX_TITLE_CHARS = 120


class ScreenshotConfig(StrictModel):
    """Shows the agent the screen: once before its first step, then after each step."""

    kind: Literal["screenshot"] = "screenshot"
    keep_last: int = Field(default=2, ge=0)
    """How many of the newest screenshots stay in the model's context; 0 only records them."""


class WindowsConfig(StrictModel):
    """Tells the agent in text where the pointer is and which windows are open, for models that take no images."""

    kind: Literal["windows"] = "windows"


ObserveConfig = Annotated[ScreenshotConfig | WindowsConfig, Field(discriminator="kind")]


class ScreenSink(Protocol):
    """Keeps a trial's screenshots."""

    def save(self, image: Image, step: int) -> str:
        """Keep the screen as it was after `step` (0: before the first) and return its path in the trial's folder.

        Called between two steps of the agent: a PNG of 1280x800 takes some 30 ms to compress, so do that elsewhere.
        The image is never changed afterwards.
        """
        ...


class Camera:
    """Takes screenshots of one guest, keeps them, and knows which step has which."""

    def __init__(self, guest: Guest, screens: ScreenSink, meter: StepMeter) -> None:
        self.guest = guest
        self.meter = meter
        self.paths: dict[int, str] = {}
        self._screens = screens

    def shoot(self, step: int) -> Image:
        """Take and keep the screenshot of `step`."""
        with self.meter.charge("observe"):
            image = self.guest.screenshot()
        self.paths[step] = self._screens.save(image, step)
        return image


class Observation(Protocol):
    """A step callback of smolagents that can also look before the first step."""

    def before(self, task_step: Any) -> None:
        """Add to the task (smolagents' TaskStep) what is to be seen before the first step."""
        ...

    def __call__(self, memory_step: Any, agent: Any) -> None:
        """Add to the finished step (smolagents' ActionStep) what is to be seen after it."""
        ...


class Screenshot:
    """Attaches the screen to each step and takes the older ones out of the context."""

    def __init__(self, config: ScreenshotConfig, camera: Camera) -> None:
        self._keep_last = config.keep_last
        self._camera = camera
        self._shown: deque[Callable[[], None]] = deque()

    def before(self, task_step: Any) -> None:
        """Attach the initial screen to the task."""
        task_step.task_images = self._attach(task_step, "task_images", 0)

    def __call__(self, memory_step: Any, agent: Any) -> None:
        """Attach the screen to the step; its logs are not touched."""
        memory_step.observations_images = self._attach(memory_step, "observations_images", memory_step.step_number)

    def _attach(self, step: Any, field: str, number: int) -> list[Image] | None:
        image = self._camera.shoot(number)
        if not self._keep_last:
            return getattr(step, field) or None
        self._shown.append(lambda: setattr(step, field, [i for i in getattr(step, field) if i is not image] or None))
        while len(self._shown) > self._keep_last:
            self._shown.popleft()()
        return [*(getattr(step, field) or ()), image]


class Windows:
    """Adds the list of windows to each step's text."""

    def __init__(self, _config: WindowsConfig, camera: Camera) -> None:
        self._camera = camera

    def before(self, task_step: Any) -> None:
        """Add the list to the task."""
        task_step.task += "\n\n" + self._listing()

    def __call__(self, memory_step: Any, agent: Any) -> None:
        """Add the list after the step's logs."""
        memory_step.observations = "\n".join(filter(None, (memory_step.observations, self._listing())))

    def _listing(self) -> str:
        with self._camera.meter.charge("observe"):
            state = self._camera.guest.desktop()
        lines = [
            f"Screen {state.width_px}x{state.height_px}, pointer at ({state.pointer_x}, {state.pointer_y}). Windows:"
        ]
        for window in state.windows[:MAX_WINDOWS]:
            place = f"{window.width_px}x{window.height_px} at ({window.x}, {window.y})"
            title = " ".join(window.title.split())[:MAX_TITLE_CHARS]
            lines.append(f"- {title!r} {place}{', active' if window.is_active else ''}")
        return "\n".join(lines if state.windows else [*lines, "- none"])


_BY_KIND: dict[str, Callable[[Any, Camera], Observation]] = {"screenshot": Screenshot, "windows": Windows}


class Traced:
    """An observation in a span of its own."""

    def __init__(self, kind: str, inner: Observation) -> None:
        self._attributes = {"openinference.span.kind": "CHAIN", "deskfork.observation": kind}
        self._inner = inner

    def before(self, task_step: Any) -> None:
        """Look before the first step."""
        with span("observation", self._attributes):
            self._inner.before(task_step)

    def __call__(self, memory_step: Any, agent: Any) -> None:
        """Look after a step."""
        with span("observation", self._attributes):
            self._inner(memory_step, agent)


def build_observations(configs: Sequence[ObserveConfig], camera: Camera) -> list[Traced]:
    """Return the step callbacks that the configurations ask for, in their order."""
    return [Traced(config.kind, _BY_KIND[config.kind](config, camera)) for config in configs]
