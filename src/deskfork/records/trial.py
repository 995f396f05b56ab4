"""What a trial leaves in its result.json."""

from datetime import datetime
from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from deskfork.core.config import StrictModel

SelfReport = Literal["done", "failed"]
"""What an agent that ended itself said: that the task is done, or that it cannot be done."""


class TrialStatus(StrEnum):
    """Why a trial ended; independent of its score."""

    COMPLETED = "completed"
    LIMIT = "limit"
    AGENT_ERROR = "agent_error"
    INFRA_ERROR = "infra_error"
    SANDBOX_LOST = "sandbox_lost"
    CANCELLED = "cancelled"


class MetricOutcome(StrictModel):
    """One metric of an evaluation."""

    metric: str
    score: float | None = Field(ge=0.0, le=1.0)
    """What the benchmark's own evaluator would give; None when it could not be judged."""
    detail: str = ""
    """One sentence: what differed, or why it could not be judged."""
    strict_score: float | None = Field(default=None, ge=0.0, le=1.0)
    """Whether what the task asks for was done; None when it could not be judged."""
    strict_detail: str = ""


class Verdict(StrictModel):
    """A final state, judged twice: two scores, or the reason why there are none."""

    score: float | None = Field(default=None, ge=0.0, le=1.0)
    """What the benchmark's own evaluator would give, bug for bug: to be compared with published numbers."""
    strict_score: float | None = Field(default=None, ge=0.0, le=1.0)
    """What the task asks for."""
    reason: str = ""
    """Why the score is absent, or 0 without judging; empty otherwise."""
    difference: str = ""
    """Why the two scores differ; empty when they do not."""
    metrics: tuple[MetricOutcome, ...] = ()

    @model_validator(mode="after")
    def _absent_needs_a_reason(self) -> Self:
        if self.score is None and not self.reason:
            raise ValueError("an absent score needs a reason")
        return self


class TokenUsage(StrictModel):
    """Tokens that the model billed."""

    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


class TrialResult(StrictModel):
    """One attempt of one agent at one task."""

    task: str
    agent: str
    repeat: int = Field(ge=0)
    attempt: int = Field(ge=0)
    status: TrialStatus
    score: float | None
    """`verdict.score`."""
    strict_score: float | None = None
    """`verdict.strict_score`."""
    verdict: Verdict
    error: str = ""
    """What went wrong, for every status but `completed` and `limit`."""
    ending: str = ""
    """Why the agent ended, in words; empty when it was cut off."""
    model: str | None = None
    """The model's spec, for agents that have one."""
    answer: str | None = None
    """What the agent said at the end, as JSON or text; None when it never ended by itself."""
    steps: int = 0
    self_report: SelfReport | None = None
    """Whether the agent itself said that the task is done; None when it did not end by itself. It is not the score."""
    tokens: TokenUsage | None = TokenUsage()
    """None when the model did not tell for each of its calls."""
    cost_usd: float | None = None
    """At list price, cached answers at what they cost when they were made; None when price or tokens are unknown."""
    duration_s: float
    phases_s: dict[str, float]
    """Seconds by phase: fork, setup, agent, evaluate, logs, close."""
    action_mix: dict[str, int]
    """Steps by class of action: see `ActionClass`."""
    line_mix: dict[str, int] = Field(default_factory=dict)
    """Lines of all actions by what they do: see `LineClass`."""
    started_at: datetime
    provider: str
    template_digest: str
    sandbox: str = ""
    trace_id: str | None = None
