"""The agent's loop: one model call, one cell and one look at the guest after another, until something ends it.

smolagents' own `run` asks the model for a final answer when its steps are used up, which is a call too many; its
documented way of running an agent step by step has no such end, and lets our own failures end the run instead of
reaching the model.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from smolagents import ActionStep
from smolagents.monitoring import Timing
from smolagents.utils import AgentError, AgentExecutionError, AgentGenerationError

from deskfork.agent.actions.lines import ActionClassifier
from deskfork.agent.executor import GuestExecutor
from deskfork.agent.limits import Budget
from deskfork.agent.meter import StepMeter
from deskfork.agent.observe.observe import Camera
from deskfork.agent.text import clip
from deskfork.core.errors import InfraError
from deskfork.core.tracing import span
from deskfork.records.trajectory import StepRecord
from deskfork.records.trial import TokenUsage

RECORD_CHARS = 256 * 1024
"""How much of each stream of a step is recorded: its head and its tail."""
AgentStatus = Literal["completed", "limit", "agent_error"]


@dataclass(frozen=True)
class Ending:
    """Why a loop ended."""

    status: AgentStatus
    reason: str
    """In words: which limit, or how the agent came to its end."""
    answer: Any = None
    has_answer: bool = False
    error: str = ""
    """What the agent did wrong; empty unless `status` is `agent_error`."""


@dataclass
class AgentLoop:
    """One run of one agent; `agent` is a smolagents CodeAgent whose memory holds the task."""

    agent: Any
    executor: GuestExecutor
    camera: Camera
    meter: StepMeter
    budget: Budget
    on_step: Callable[[StepRecord], None]
    has_more: Callable[[], bool]
    """Whether the model has anything more to say; only a script ever has not."""
    stops_at_error: bool = False
    _classifier: ActionClassifier = field(default_factory=ActionClassifier)

    def run(self) -> Ending:
        """Take steps until the agent gives its answer, hits a limit or has nothing more to say.

        Raises:
            InfraError: The model, the guest or the way to it failed; the step in which it did was still recorded.
        """
        while True:
            if not self.has_more():
                return Ending("completed", "script ended")
            if reason := self.budget.spent():
                return Ending("limit", reason)
            if ending := self._turn():
                return ending

    def _turn(self) -> Ending | None:
        number = self.budget.steps + 1
        self.meter.start_step()
        self.executor.forget()
        step = ActionStep(step_number=number, timing=Timing(start_time=time.time()))
        with span("step", {"openinference.span.kind": "CHAIN", "deskfork.step": number}) as current:
            output, failure = self._act(step)
            if isinstance(failure, AgentGenerationError):
                if self.budget.is_out_of_time:
                    return Ending("limit", self.budget.spent())
                raise failure.__cause__ or failure
            self.budget.steps = number
            step.timing.end_time = time.time()
            failure = failure or self._observe(step)
            # Both hold the images of every earlier call; nothing reads them again.
            step.model_input_messages = step.model_output_message = None
            step.is_final_answer = bool(output and output.is_final_answer)
            self.agent.memory.steps.append(step)
            record = self._record(step, failure)
            current.set_attribute("deskfork.action", record.action)
            self.on_step(record)
            if failure is not None:
                raise failure
        return self._ending(step, output)

    def _act(self, step: Any) -> tuple[Any, BaseException | None]:
        """Take one step of the agent; the failure is ours, not the agent's."""
        try:
            return self.agent.step(step), None
        except AgentGenerationError as error:
            return None, error
        except AgentExecutionError as error:
            # smolagents wraps whatever the executor raises; what the agent did wrong is such an error already.
            if error.__context__ is not None and not isinstance(error.__context__, AgentExecutionError):
                return None, error.__context__
            step.error = error
        except AgentError as error:
            step.error = error
        return None, None

    def _observe(self, step: Any) -> InfraError | None:
        try:
            self.agent.step_callbacks.callback(step, agent=self.agent)
        except InfraError as error:
            return error
        return None

    def _record(self, step: Any, failure: BaseException | None) -> StepRecord:
        cell, usage = self.executor.last, step.token_usage
        error = str(step.error) if step.error else None
        if failure is not None:
            error = f"{type(failure).__name__}: {failure}"
        return StepRecord(
            step=step.step_number,
            model_output=step.model_output or "",
            code=step.code_action,
            action=self._classifier.classify(step.code_action),
            stdout=clip(cell.stdout, RECORD_CHARS) if cell else "",
            stderr=clip(cell.stderr, RECORD_CHARS) if cell else "",
            error=error,
            timed_out=bool(cell and cell.timed_out),
            is_final=step.is_final_answer,
            screen=self.camera.paths.get(step.step_number),
            tokens=TokenUsage(input_tokens=usage.input_tokens or 0, output_tokens=usage.output_tokens or 0)
            if usage
            else TokenUsage(),
            **self.meter.split(),
        )

    def _ending(self, step: Any, output: Any) -> Ending | None:
        if step.is_final_answer:
            return Ending("completed", "final answer", answer=output.output, has_answer=True)
        if step.error and self.stops_at_error and not self.budget.is_out_of_time:
            why = str(step.error).strip().rsplit("\n", 1)[-1]
            if self.executor.last and self.executor.last.timed_out:
                why = f"interrupted after {self.executor.last.duration_s:.0f} s"
            return Ending("agent_error", "script failed", error=f"cell {step.step_number} failed: {why}")
        return None
