"""What a step callback is: something that looks, or acts, before an agent's first step and after each."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from PIL.Image import Image

from deskfork.agent.hands import Hands
from deskfork.agent.meter import StepMeter
from deskfork.agent.registry import Registry
from deskfork.agent.view import View
from deskfork.core.config import StrictModel
from deskfork.core.tracing import span
from deskfork.sandbox.base import Guest

GROUP = "deskfork.step_callbacks"
_CHAIN = {"openinference.span.kind": "CHAIN"}


class ScreenSink(Protocol):
    """Keeps a trial's screenshots."""

    def save(self, image: Image, step: int) -> str:
        """Keep a picture of the screen as it was after `step` (0: before the first); returns its path in the trial.

        Called between two steps of the agent: a PNG of 1280x800 takes some 30 ms to compress, so do that elsewhere.
        The image is never changed afterwards.
        """
        ...


class Camera:
    """Takes pictures of one guest's screen, keeps them, and knows which step has which."""

    def __init__(self, guest: Guest, screens: ScreenSink, meter: StepMeter) -> None:
        self.paths: dict[int, str] = {}
        """The screen after each step; 0 is the one before the first."""
        self.shown: dict[int, list[str]] = {}
        """The pictures that the model was shown after each step, where it was shown any."""
        self._guest = guest
        self._screens = screens
        self._meter = meter
        self._latest: tuple[int, Image] | None = None

    def shoot(self, step: int) -> Image:
        """Take and keep the screen after `step`."""
        with span("observation", {**_CHAIN, "deskfork.observation": "screen"}), self._meter.charge("observe"):
            image = self._guest.screenshot()
        self.paths[step] = self._screens.save(image, step)
        self._latest = (step, image)
        return image

    @property
    def latest(self) -> Image:
        """The screen that was taken last."""
        if self._latest is None:
            raise RuntimeError("no screen was taken yet")
        return self._latest[1]

    def show(self, image: Image) -> Image:
        """Note that the model is shown this picture; returns it."""
        step = self._latest[0] if self._latest else 0
        self.shown.setdefault(step, []).append(self._screens.save(image, step))
        return image


@dataclass(frozen=True)
class Scene:
    """What a step callback has to do with."""

    guest: Guest
    camera: Camera
    view: View
    hands: Hands


class Observer(Protocol):
    """A step callback of smolagents that also takes part before the first step."""

    def before(self, task_step: Any) -> None:
        """Add to the task (smolagents' TaskStep) what is to be seen before the first step."""
        ...

    def __call__(self, memory_step: Any, agent: Any) -> None:
        """Add to the finished step (smolagents' ActionStep) what is to be seen after it."""
        ...


class NoOptions(StrictModel):
    """Nothing can be chosen."""


@dataclass(frozen=True)
class StepCallback:
    """A step callback as a package registers it."""

    name: str
    summary: str
    build: Callable[[Any, Scene], Observer]
    """Makes it for one run of an agent, from its options."""
    told: str = ""
    """What the agent is told that it will be shown; empty when it is shown nothing."""
    options: type[StrictModel] = NoOptions
    has_images: bool = False
    excludes: tuple[str, ...] = ()
    """Step callbacks that it cannot be combined with."""


@functools.cache
def step_callbacks() -> Registry[StepCallback]:
    """Return all step callbacks that are installed."""
    return Registry(GROUP, StepCallback)


class Traced:
    """A step callback in a span of its own, booked as looking."""

    def __init__(self, name: str, inner: Observer, meter: StepMeter) -> None:
        self._attributes = {**_CHAIN, "deskfork.observation": name}
        self._inner = inner
        self._meter = meter

    def before(self, task_step: Any) -> None:
        """Look before the first step."""
        with span("observation", self._attributes), self._meter.charge("observe"):
            self._inner.before(task_step)

    def __call__(self, memory_step: Any, agent: Any) -> None:
        """Look after a step."""
        with span("observation", self._attributes), self._meter.charge("observe"):
            self._inner(memory_step, agent)


def add_text(step: Any, text: str) -> None:
    """Add a paragraph to what the model is told, before the first step or after one."""
    if hasattr(step, "observations"):
        step.observations = "\n".join(filter(None, (step.observations, text)))
    else:
        step.task += "\n\n" + text


def add_image(step: Any, image: Image) -> None:
    """Add a picture to what the model is shown, before the first step or after one."""
    field = "observations_images" if hasattr(step, "observations_images") else "task_images"
    setattr(step, field, [*(getattr(step, field) or ()), image])
