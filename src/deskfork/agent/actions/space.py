"""What an action space is: one way in which agents may act, and everything that follows from it."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from string import Template
from typing import Any

import yaml

from deskfork.agent.hands import Hands
from deskfork.agent.registry import Registry
from deskfork.agent.view import View
from deskfork.core.config import StrictModel

GROUP = "deskfork.action_spaces"


class Prompt(StrictModel):
    """What an agent is told, as templates with `$name` for what only the trial knows."""

    system: str | None = None
    """None: smolagents' own system prompt, as it is shipped."""
    task: str
    """Placeholders: width, height, steps, observed, packages, cell_timeout, instruction."""


@dataclass(frozen=True)
class Parts:
    """What an action space makes its agent from."""

    model: Any
    """smolagents' Model."""
    hands: Hands
    view: View
    look: Callable[[], Any]
    """Takes a picture of the screen for the model (a PIL image), for spaces in which the agent asks for one."""
    callbacks: Sequence[Callable[..., None]]
    """Step callbacks."""
    system_prompt: str = ""
    """Filled in; empty where the space uses smolagents' own."""
    is_scripted: bool = False
    """Cells come from a script as structured output, which carries any code."""


@dataclass(frozen=True)
class ActionSpace:
    """One way in which agents may act."""

    name: str
    summary: str
    """What the agent may do, in one line."""
    source: str
    """Where it comes from."""
    prompt: Prompt
    build: Callable[[Parts], Any]
    """Makes smolagents' MultiStepAgent."""
    observe: tuple[str, ...]
    """Observations by default."""
    impossible: Mapping[str, str] = field(default_factory=dict)
    """Observations that make no sense here, each with the reason."""
    answers: tuple[str, ...] = ()
    """What the agent is told that each act answers by itself, whatever it observes."""
    """Whether variables live on from step to step."""


def load_prompt(name: str) -> Prompt:
    """Return one of the prompts that come with deskfork."""
    text = resources.files("deskfork.agent").joinpath("prompts", f"{name}.yaml").read_text(encoding="utf-8")
    return Prompt.model_validate(yaml.safe_load(text))


def fill(template: str, values: Mapping[str, object]) -> str:
    """Put a trial's values into a prompt."""
    return Template(template).substitute(values)


@functools.cache
def action_spaces() -> Registry[ActionSpace]:
    """Return all action spaces that are installed."""
    return Registry(GROUP, ActionSpace)


def action_space(name: str) -> ActionSpace:
    """Return the action space of that name.

    Raises:
        ConfigError: There is none, or the package that brings it is broken.
    """
    return action_spaces().get(name)
