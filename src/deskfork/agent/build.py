"""Builds an agent from its configuration and runs it on a guest."""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from smolagents import CodeAgent, TaskStep

from deskfork.agent.config import AgentConfig, CodeConfig, NullConfig, OracleConfig
from deskfork.agent.conversation import Message, conversation
from deskfork.agent.executor import CellLimits, GuestExecutor, SilentLogger
from deskfork.agent.limits import Budget, Limits
from deskfork.agent.loop import AgentLoop, AgentStatus, Ending
from deskfork.agent.meter import StepMeter
from deskfork.agent.models.metered import MeteredModel
from deskfork.agent.models.scripted import ScriptedModel, read_replay
from deskfork.agent.models.specs import BuiltModel, build_model
from deskfork.agent.observe.observe import Camera, ScreenshotConfig, ScreenSink, build_observations
from deskfork.agent.prompts import installed_packages, task_prompt
from deskfork.agent.text import encodable
from deskfork.core.errors import ConfigError
from deskfork.records.trajectory import StepRecord
from deskfork.records.trial import TokenUsage
from deskfork.sandbox.base import Guest


@dataclass(frozen=True)
class AgentOutcome:
    """What became of one agent's run."""

    status: AgentStatus
    answer: str | None
    """What it said at the end: text as it is, anything else as JSON; None when it never ended by itself."""
    steps: int
    tokens: TokenUsage
    cost_usd: float | None
    """None when the model's price is unknown."""
    error: str
    """What the agent did wrong; empty unless `status` is `agent_error`."""
    reason: str
    """Why it ended, in words: `final answer`, `script ended`, `limit of 15 steps`."""
    messages: list[Message] = field(default_factory=list)
    """The whole conversation, JSON as it is."""


def check_agent(config: AgentConfig) -> None:
    """Find out whether the agent can be run, before a machine is started for it.

    Raises:
        ConfigError: The model, a key, a package or the replay file is missing or unfit.
        InfraError: A local model could not be loaded.
    """
    if isinstance(config, CodeConfig):
        _model(config)
    elif not isinstance(config, OracleConfig | NullConfig):
        read_replay(config.file)


def run_agent(
    config: AgentConfig,
    *,
    instruction: str,
    guest: Guest,
    solution_cells: list[str] | None,
    limits: Limits,
    screens: ScreenSink,
    on_step: Callable[[StepRecord], None],
) -> AgentOutcome:
    """Run an agent on a guest until it ends or is ended.

    Args:
        config: Which agent.
        instruction: The task's text.
        guest: The machine, set up for the task.
        solution_cells: The task's solution, for the oracle.
        limits: When to stop the agent.
        screens: Keeps the screenshots.
        on_step: Told of each step as soon as it is over, the one in which something of ours failed included.

    Raises:
        ConfigError: The agent cannot be run: see `check_agent`, or there is no solution for the oracle.
        InfraError: The model failed for good. It says nothing about the agent.
        SandboxError: The machine is gone.
        TransportError: The kernel died (KernelLost) or the guest did not answer as agreed.
    """
    if isinstance(config, NullConfig):
        return AgentOutcome("completed", None, 0, TokenUsage(), 0.0, "", "null agent")
    meter = StepMeter()
    camera = Camera(guest, screens, meter)
    budget = Budget(limits)
    built: BuiltModel | None = None
    script: ScriptedModel | None = None
    model: MeteredModel | ScriptedModel
    if isinstance(config, CodeConfig):
        built = _model(config)
        model = MeteredModel(built, budget, meter, attempts=config.settings.attempts)
    else:
        model = script = ScriptedModel(_cells(config, solution_cells), config.name)
    executor = GuestExecutor(guest, CellLimits(config.cell_timeout_s, config.output_chars), budget, meter)
    observations = build_observations(config.observe, camera)
    agent = CodeAgent(
        tools=[],
        model=model,
        executor=executor,
        additional_authorized_imports=["*"],
        use_structured_outputs_internally=script is not None,
        # smolagents looks for tags even in structured output: a script must not contain them by chance.
        code_block_tags=_unguessable_tags() if script else None,
        step_callbacks=observations,
        logger=SilentLogger(),
    )
    task = TaskStep(task=_task(config, instruction, guest, limits))
    for observation in observations:
        observation.before(task)
    agent.memory.steps.append(task)
    ending = AgentLoop(
        agent=agent,
        executor=executor,
        camera=camera,
        meter=meter,
        budget=budget,
        on_step=on_step,
        has_more=lambda: script is None or script.has_more,
        stops_at_error=isinstance(config, OracleConfig),
    ).run()
    return _outcome(ending, budget, built, conversation(agent.memory, camera.paths))


def _model(config: CodeConfig) -> BuiltModel:
    settings = config.settings
    built = build_model(
        config.model,
        timeout_s=settings.timeout_s,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
    )
    if not built.takes_images and any(isinstance(o, ScreenshotConfig) and o.keep_last for o in config.observe):
        raise ConfigError(
            f"model '{config.model}' takes no images: use an agent file with `observe: [{{kind: windows}}]`"
            " or with `keep_last: 0` for its screenshots"
        )
    return built


def _cells(config: Any, solution_cells: list[str] | None) -> list[str]:
    if not isinstance(config, OracleConfig):
        return read_replay(config.file)
    if solution_cells is None:
        raise ConfigError("the task has no solution for the oracle agent to run: add one, or choose another agent")
    return solution_cells


def _task(config: Any, instruction: str, guest: Guest, limits: Limits) -> str:
    if not isinstance(config, CodeConfig):
        return instruction
    screen = guest.screenshot().size
    packages = installed_packages(guest, config.packages)
    return task_prompt(config, instruction=instruction, steps=limits.steps, screen=screen, packages=packages)


def _unguessable_tags() -> tuple[str, str]:
    token = secrets.token_hex(8)
    return f"<cell-{token}>", f"</cell-{token}>"


def _outcome(ending: Ending, budget: Budget, built: BuiltModel | None, messages: list[Message]) -> AgentOutcome:
    cost: float | None = 0.0
    if built is not None:
        cost = built.price.cost_usd(budget.input_tokens, budget.output_tokens) if built.price else None
    answer = ending.answer if isinstance(ending.answer, str) else json.dumps(ending.answer)
    return AgentOutcome(
        status=ending.status,
        answer=encodable(answer) if ending.has_answer else None,
        steps=budget.steps,
        tokens=TokenUsage(input_tokens=budget.input_tokens, output_tokens=budget.output_tokens),
        cost_usd=cost,
        error=ending.error,
        reason=ending.reason,
        messages=messages,
    )
