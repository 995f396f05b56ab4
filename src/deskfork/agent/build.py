"""Builds an agent from its configuration and runs it on a guest."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smolagents import TaskStep

from deskfork.agent.actions.code_gui import SPACE as CODE_GUI
from deskfork.agent.actions.space import ActionSpace, Parts, fill
from deskfork.agent.config import AgentConfig, ModelAgentConfig, NullConfig, OracleConfig
from deskfork.agent.conversation import Message, conversation
from deskfork.agent.hands import ActLimits, Hands
from deskfork.agent.limits import Budget, Limits
from deskfork.agent.loop import AgentLoop, AgentStatus, Ending
from deskfork.agent.meter import StepMeter
from deskfork.agent.models.built import BuiltModel, Price
from deskfork.agent.models.cache import ResponseCache
from deskfork.agent.models.metered import MeteredModel
from deskfork.agent.models.scripted import ScriptedModel, read_replay
from deskfork.agent.models.specs import build_model
from deskfork.agent.observe.base import Camera, Scene, ScreenSink, Traced
from deskfork.agent.observe.screenshot import shrunk
from deskfork.agent.packages import installed_packages
from deskfork.agent.prelude import scale_cell
from deskfork.agent.text import encodable
from deskfork.agent.view import View
from deskfork.core.errors import ConfigError
from deskfork.records.trajectory import StepRecord
from deskfork.records.trial import SelfReport, TokenUsage
from deskfork.sandbox.base import Guest


@dataclass(frozen=True)
class AgentOutcome:
    """What became of one agent's run."""

    status: AgentStatus
    answer: str | None
    """What it said at the end: text as it is, anything else as JSON; None when it never ended by itself."""
    self_report: SelfReport | None
    """Whether it says that the task is done; None when it never ended by itself."""
    steps: int
    tokens: TokenUsage | None
    """None when the model did not tell."""
    cost_usd: float | None
    """None when the model's price, or what it used, is unknown."""
    error: str
    """What the agent did wrong; empty unless `status` is `agent_error`."""
    reason: str
    """Why it ended, in words: `final answer`, `script ended`, `limit of 15 steps`."""
    messages: list[Message] = field(default_factory=list)
    """The whole conversation, JSON as it is."""


@dataclass(frozen=True)
class CacheUse:
    """Where answers of models are kept, and which of several equal questions this is."""

    folder: Path
    stream: str
    """Repeats of a trial ask the same and must not be given the same answers: `repeat 2`."""


def check_agent(config: AgentConfig) -> Price | None:
    """Find out whether the agent can be run, before a machine is started for it.

    Returns:
        What its model costs, nothing for an agent without one; None where that is not known.

    Raises:
        ConfigError: The model, a key, a package or the replay file is missing or unfit.
        InfraError: A local model could not be loaded.
    """
    if isinstance(config, ModelAgentConfig):
        return _model(config).price
    if not isinstance(config, OracleConfig | NullConfig):
        read_replay(config.file)
    return Price(0.0, 0.0)


def run_agent(
    config: AgentConfig,
    *,
    instruction: str,
    guest: Guest,
    solution_cells: list[str] | None,
    limits: Limits,
    screens: ScreenSink,
    on_step: Callable[[StepRecord], None],
    cache: CacheUse | None = None,
    outside: Callable[[], str] | None = None,
) -> AgentOutcome:
    """Run an agent on a guest until it ends or is ended.

    Args:
        config: Which agent.
        instruction: The task's text.
        guest: The machine, set up for the task.
        solution_cells: The task's solution, for the oracle.
        limits: When to stop the agent, unless its configuration says so itself.
        screens: Keeps the screenshots.
        on_step: Told of each step as soon as it is over, the one in which something of ours failed included.
        cache: Where answers of models are kept; None to ask anew each time.
        outside: Asked before each step: why the agent is to end although it is within its limits, or nothing.

    Raises:
        ConfigError: The agent cannot be run: see `check_agent`, or there is no solution for the oracle.
        InfraError: The model failed for good. It says nothing about the agent.
        SandboxError: The machine is gone.
        TransportError: The kernel died (KernelLost) or the guest did not answer as agreed.
    """
    if isinstance(config, NullConfig):
        return AgentOutcome("completed", None, None, 0, TokenUsage(), 0.0, "", "null agent")
    if isinstance(config, ModelAgentConfig) and config.limits is not None:
        limits = config.limits
    meter, budget = StepMeter(), Budget(limits) if outside is None else Budget(limits, outside)
    hands = Hands(guest, ActLimits(config.cell_timeout_s, config.output_chars), budget, meter)
    camera = Camera(guest, screens, meter)
    scene = Scene(guest, camera, _view(config, camera), hands)
    built: BuiltModel | None = None
    model: MeteredModel | ScriptedModel
    if isinstance(config, ModelAgentConfig):
        built = _model(config)
        budget.price = built.price
        kept = ResponseCache(cache.folder, stream=cache.stream) if cache else None
        model = MeteredModel(
            built, budget, meter, attempts=config.settings.attempts, cache=kept, context=config.context
        )
    else:
        # What a script prints belongs to its record, whoever reads it.
        hands.shows_output = True
        model = ScriptedModel(_cells(config, solution_cells), config.name)
    agent = _agent(config, model, scene, meter, _values(config, instruction, guest, limits, scene.view))
    ending = AgentLoop(
        agent=agent,
        hands=hands,
        camera=camera,
        meter=meter,
        budget=budget,
        on_step=on_step,
        model=model,
        stops_at_error=isinstance(config, OracleConfig),
    ).run()
    return _outcome(ending, budget, built, conversation(agent.memory, camera.shown))


def _view(config: Any, camera: Camera) -> View:
    width, height = camera.shoot(0).size
    longest = config.picture_px if isinstance(config, ModelAgentConfig) else None
    scale = max(1.0, max(width, height) / longest) if longest else 1.0
    return View(width, height, (scale, scale))


def _agent(config: Any, model: Any, scene: Scene, meter: StepMeter, values: Mapping[str, object]) -> Any:
    """Return smolagents' agent, with the task in its memory."""
    is_scripted = not isinstance(config, ModelAgentConfig)
    space: ActionSpace = CODE_GUI if is_scripted else config.space()
    if scene.view.scale != (1.0, 1.0):
        scene.hands.prepare(scale_cell(*scene.view.scale))
    looks = [] if is_scripted else [Traced(c.name, c.build(o, scene), meter) for c, o in config.step_callbacks()]
    agent = space.build(
        Parts(
            model=model,
            hands=scene.hands,
            view=scene.view,
            look=lambda: scene.camera.show(shrunk(scene.guest.screenshot(), scene.view)),
            callbacks=looks,
            system_prompt=fill(space.prompt.system or "", values),
            is_scripted=is_scripted,
        )
    )
    task = TaskStep(task=str(values["instruction"]) if is_scripted else fill(space.prompt.task, values))
    for look in looks:
        look.before(task)
    agent.memory.steps.append(task)
    return agent


def _values(config: Any, instruction: str, guest: Guest, limits: Limits, view: View) -> dict[str, object]:
    values: dict[str, object] = {"instruction": instruction.strip()}
    if not isinstance(config, ModelAgentConfig):
        return values
    needs_packages = "$packages" in config.space().prompt.task
    packages = installed_packages(guest, config.packages) if needs_packages else ()
    return values | prompt_values(config, limits, view.shown_px, packages)


def prompt_values(
    config: ModelAgentConfig, limits: Limits, shown_px: tuple[int, int], packages: Any
) -> dict[str, object]:
    """Return what the prompts of an agent are filled with, the instruction apart.

    Args:
        config: The agent.
        limits: What it may use.
        shown_px: Width and height of the pictures that it is shown.
        packages: What is installed in the guest, as `name version`.
    """
    told = [*config.space().answers, *(callback.told for callback, _ in config.step_callbacks() if callback.told)]
    return {
        "width": shown_px[0],
        "height": shown_px[1],
        "steps": limits.steps,
        "observed": ", ".join([*told, "and the error where something failed or was refused"]),
        "packages": ", ".join(packages) or "the standard library",
        "cell_timeout": f"{config.cell_timeout_s:g}",
    }


def _model(config: ModelAgentConfig) -> BuiltModel:
    built = build_model(config.model, config.settings)
    shown = [callback.name for callback, _ in config.step_callbacks() if callback.has_images]
    if not built.takes_images and shown:
        raise ConfigError(
            f"model '{config.model}' takes no images, but the agent observes '{shown[0]}':"
            " use `observe: [text_only, terminal]` or `a11y_tree`"
        )
    return built


def _cells(config: Any, solution_cells: list[str] | None) -> list[str]:
    if not isinstance(config, OracleConfig):
        return read_replay(config.file)
    if solution_cells is None:
        raise ConfigError("the task has no solution for the oracle agent to run: add one, or choose another agent")
    return solution_cells


def _outcome(ending: Ending, budget: Budget, built: BuiltModel | None, messages: list[Message]) -> AgentOutcome:
    tokens, cost = budget.usage(), 0.0 if built is None else None
    if built is not None and built.price is not None and tokens is not None:
        cost = built.price.cost_usd(tokens.input_tokens, tokens.output_tokens)
    answer = ending.answer if isinstance(ending.answer, str) else json.dumps(ending.answer)
    return AgentOutcome(
        status=ending.status,
        answer=encodable(answer) if ending.has_answer else None,
        self_report=ending.self_report,
        steps=budget.steps,
        tokens=tokens,
        cost_usd=cost,
        error=ending.error,
        reason=ending.reason,
        messages=messages,
    )
