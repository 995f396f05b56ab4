"""What a trial is handed, and what it tells while it goes on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from deskfork.agent.config import AgentConfig, ModelAgentConfig
from deskfork.agent.limits import Limits
from deskfork.agent.models.built import Price
from deskfork.core.tracing import TraceContext
from deskfork.records.paths import RunPaths
from deskfork.records.trial import TokenUsage, TrialResult
from deskfork.sandbox.base import SandboxProvider
from deskfork.tasks.schema import Task
from deskfork.trial.budget import RunLedger
from deskfork.trial.policies import script_of


@dataclass(frozen=True)
class TrialPlan:
    """One agent at one task, for the `repeat`-th time."""

    task: Task
    agent: AgentConfig
    repeat: int
    solution_cells: list[str] | None = None
    """For the oracle."""
    setup_key: str = ""
    """Where this set-up was baked, the trial begins with it done."""
    price: Price | None = None
    """What the agent's model costs; None where that is not known."""
    model_name: str | None = None
    """What `model` is to be, where a node of a cluster reads its script at another place."""

    @property
    def model(self) -> str | None:
        """What records call the model, for agents that have one: its spec, a script's without where its folder lies."""
        if self.model_name is not None or not isinstance(self.agent, ModelAgentConfig):
            return self.model_name
        if script := script_of(self.agent):
            return f"{self.agent.model.partition(':')[0]}:{script.parent.name}/{script.name}"
        return self.agent.model

    @property
    def key(self) -> tuple[str, str, int]:
        """What no two trials of a run share: task, agent, repeat."""
        return self.task.id, self.agent.name, self.repeat

    def cost_usd(self, tokens: TokenUsage | None) -> float | None:
        """Return what so many tokens cost, US dollars; None where they or the price are not known."""
        if tokens is None or self.price is None:
            return None
        return self.price.cost_usd(tokens.input_tokens, tokens.output_tokens)


@dataclass(frozen=True)
class TrialEvent:
    """Something that a trial reached."""

    plan: TrialPlan
    attempt: int
    phase: str
    """fork, setup, agent, evaluate, close, or `ended`."""
    step: int = 0
    """How many steps the agent has taken, while it is at work."""
    result: TrialResult | None = None
    """With `ended`."""
    is_last: bool = False
    """With `ended`: no further attempt follows."""


Notify = Callable[[TrialEvent], None]


@dataclass(frozen=True)
class TrialSetting:
    """What all trials of a run share."""

    provider: SandboxProvider
    paths: RunPaths
    limits: Limits
    setup_timeout_s: float
    network: bool
    notify: Notify
    ledger: RunLedger
    """What the run has used, and when that is enough."""
    keep_state: bool = False
    """Whether each attempt keeps the disk as the agent left it."""
    evaluations: int = 1
    """How often each end state is read; the first time counts."""
    cache: Path | None = None
    """Where answers of models are kept; None to ask anew each time."""
    parent: TraceContext | None = None
    """The run's span: trials may run in other threads."""
    cancelled: Event = field(default_factory=Event)
    """Set to end the run: trials stop at the next phase or step."""
    ongoing: list[Callable[[], TrialResult | None]] = field(default_factory=list)
    """For each attempt that is at work: records it as cancelled from outside, unless it has ended meanwhile."""
