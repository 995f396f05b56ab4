"""What there is to choose from, and what each agent is told: for people who compare agents."""

import json
from typing import Any, Literal

import yaml
from pydantic import Field
from smolagents import ToolCallingAgent
from smolagents.models import get_tool_json_schema

from deskfork.agent.actions.space import Parts, action_space, action_spaces, fill
from deskfork.agent.build import prompt_values
from deskfork.agent.config import ModelAgentConfig, parse_agent
from deskfork.agent.hands import ActLimits, Hands
from deskfork.agent.limits import Budget, Limits
from deskfork.agent.meter import StepMeter
from deskfork.agent.observe.base import step_callbacks
from deskfork.agent.view import View
from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError

SCREEN_PX = (1280, 800)
"""What templates have unless they are built otherwise."""
_NO_MODEL = "none"


class Listed(StrictModel):
    """One name, and what stands behind it."""

    kind: Literal["action space", "agent", "step callback"]
    name: str
    summary: str
    source: str = ""
    observes: tuple[str, ...] = ()
    """What an action space observes by default."""
    conflicts: dict[str, str] = Field(default_factory=dict)
    """Step callbacks that it cannot be combined with, and why."""


class Catalogue(StrictModel):
    """All that is installed."""

    entries: tuple[Listed, ...]


class Description(StrictModel):
    """An agent, and what its model is told before the first step."""

    config: dict[str, Any]
    system_prompt: str
    task_prompt: str
    """`$instruction` and what else only the trial knows stay as they are."""
    tools: tuple[dict[str, Any], ...] = ()
    """JSON schemas of the tools, where the agent calls any."""

    def text(self) -> str:
        """Return it for a terminal."""
        parts = [
            "Configuration\n\n" + yaml.safe_dump(self.config, sort_keys=False, allow_unicode=True).rstrip(),
            "System prompt\n\n" + self.system_prompt.rstrip(),
            "Task prompt\n\n" + self.task_prompt.rstrip(),
        ]
        if self.tools:
            parts.append("Tools\n\n" + "\n".join(json.dumps(tool["function"]) for tool in self.tools))
        return "\n\n".join(parts)


def catalogue() -> Catalogue:
    """Return what there is to choose from.

    Raises:
        ConfigError: A package registers something that is broken.
    """
    spaces = [action_space(name) for name in action_spaces().names()]
    callbacks = [step_callbacks().get(name) for name in step_callbacks().names()]
    return Catalogue(
        entries=(
            *(
                Listed(
                    kind="action space",
                    name=space.name,
                    summary=space.summary,
                    source=space.source,
                    observes=space.observe,
                    conflicts=dict(space.impossible),
                )
                for space in spaces
            ),
            Listed(kind="agent", name="oracle", summary="runs the task's solution, one cell a step"),
            Listed(kind="agent", name="null", summary="does nothing: the floor of every score"),
            Listed(kind="agent", name="replay:FILE", summary="runs the cells of a trajectory.jsonl again"),
            *(
                Listed(
                    kind="step callback",
                    name=callback.name,
                    summary=callback.summary,
                    conflicts=dict.fromkeys(callback.excludes, "it shows the screen in another way"),
                )
                for callback in callbacks
            ),
        )
    )


def describe(spec: str) -> Description:
    """Return what an agent is told; its model is not asked, and need not be named.

    Raises:
        ConfigError: There is no such agent, or it is not one that is told anything.
    """
    config = parse_agent(spec, without_model=_NO_MODEL)
    if not isinstance(config, ModelAgentConfig):
        raise ConfigError(f"agent '{spec}' asks no model, so there is nothing that it is told")
    scale = max(1.0, max(SCREEN_PX) / (config.picture_px or max(SCREEN_PX)))
    view = View(*SCREEN_PX, (scale, scale))
    values = prompt_values(config, config.limits or Limits(), view.shown_px, config.packages)
    values["instruction"] = "$instruction"
    agent = _agent(config, view, fill(config.space().prompt.system or "", values))
    shown = config.model_dump(mode="json", exclude={"kind"}, exclude_none=True)
    for key in ("observe", "callbacks"):
        shown[key] = [_short(named) for named in shown[key]]
    if config.model == _NO_MODEL:
        del shown["model"]
    return Description(
        config=shown,
        system_prompt=agent.system_prompt,
        task_prompt=fill(config.space().prompt.task, values),
        tools=tuple(map(get_tool_json_schema, agent.tools.values())) if isinstance(agent, ToolCallingAgent) else (),
    )


def _short(named: dict[str, Any]) -> Any:
    """Return a step callback as one writes it."""
    return {"name": named["name"], **named["options"]} if named["options"] else named["name"]


def _agent(config: ModelAgentConfig, view: View, system_prompt: str) -> Any:
    meter = StepMeter()
    nowhere: Any = None
    hands = Hands(nowhere, ActLimits(config.cell_timeout_s, config.output_chars), Budget(Limits()), meter)
    return config.space().build(
        Parts(model=None, hands=hands, view=view, look=lambda: None, callbacks=(), system_prompt=system_prompt)
    )
