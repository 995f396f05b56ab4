"""The agent's loop: one model call, one act and one look at the guest after another, until something ends it.

smolagents' own `run` asks the model for a final answer when its steps are used up, which is a call too many; its
documented way of running an agent step by step has no such end, and lets our own failures end the run instead of
reaching the model.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from smolagents import ActionStep
from smolagents.monitoring import Timing
from smolagents.utils import AgentError, AgentExecutionError, AgentGenerationError

from deskfork.agent.actions.refusal import Refused
from deskfork.agent.hands import Hands
from deskfork.agent.limits import Budget
from deskfork.agent.meter import StepMeter
from deskfork.agent.models.call import Call
from deskfork.agent.observe.base import Camera
from deskfork.agent.text import clip
from deskfork.core.errors import InfraError
from deskfork.core.tracing import span
from deskfork.records.trajectory import StepRecord, ToolCallRecord, action_class
from deskfork.records.trial import SelfReport, TokenUsage

RECORD_CHARS = 256 * 1024
"""How much of each stream of a step is recorded: its head and its tail."""
AgentStatus = Literal["completed", "limit", "agent_error"]


class Speaker(Protocol):
    """The model of a loop."""

    last: Call | None
    """What it was asked last."""

    @property
    def has_more(self) -> bool:
        """Whether it has anything more to say; only a script ever has not."""
        ...


@dataclass(frozen=True)
class Ending:
    """Why a loop ended."""

    status: AgentStatus
    reason: str
    """In words: which limit, or how the agent came to its end."""
    answer: Any = None
    has_answer: bool = False
    self_report: SelfReport | None = None
    error: str = ""
    """What the agent did wrong; empty unless `status` is `agent_error`."""


@dataclass
class AgentLoop:
    """One run of one agent; `agent` is smolagents' MultiStepAgent, whose memory holds the task."""

    agent: Any
    hands: Hands
    camera: Camera
    meter: StepMeter
    budget: Budget
    on_step: Callable[[StepRecord], None]
    model: Speaker
    stops_at_error: bool = False

    def run(self) -> Ending:
        """Take steps until the agent gives its answer, hits a limit or has nothing more to say.

        Raises:
            InfraError: The model, the guest or the way to it failed; the step in which it did was still recorded.
        """
        while True:
            if not self.model.has_more:
                return Ending("completed", "script ended")
            if reason := self.budget.spent():
                return Ending("limit", reason)
            if ending := self._turn():
                return ending

    def _turn(self) -> Ending | None:
        number = self.budget.steps + 1
        self.meter.start_step()
        self.hands.forget()
        step = ActionStep(step_number=number, timing=Timing(start_time=time.time()))
        with span("step", {"openinference.span.kind": "CHAIN", "deskfork.step": number}) as current:
            output, failure = self._act(step)
            if isinstance(failure, AgentGenerationError):
                if self.budget.is_out_of_time:
                    return Ending("limit", self.budget.spent())
                raise failure.__cause__ or failure
            self.budget.steps = number
            step.timing.end_time = time.time()
            step.is_final_answer = bool(output and output.is_final_answer)
            failure = failure or self._observe(step)
            # Both hold the images of every earlier call; nothing reads them again.
            step.model_input_messages = step.model_output_message = None
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
            if error.__context__ is not None and not isinstance(error.__context__, AgentExecutionError | Refused):
                return None, error.__context__
            step.error = error
        except AgentError as error:
            step.error = error
        except InfraError as error:
            return None, error
        return None, None

    def _observe(self, step: Any) -> InfraError | None:
        try:
            self.camera.shoot(step.step_number)
            self.agent.step_callbacks.callback(step, agent=self.agent)
        except InfraError as error:
            return error
        return None

    def _record(self, step: Any, failure: BaseException | None) -> StepRecord:
        acted, call = self.hands.acted, self.model.last
        error = str(step.error) if step.error else None
        if failure is not None:
            error = f"{type(failure).__name__}: {failure}"
        return StepRecord(
            step=step.step_number,
            model_output=step.model_output or "",
            tool_calls=tuple(ToolCallRecord(name=name, arguments=given) for name, given in call.tool_calls)
            if call
            else (),
            code=acted.code,
            action=acted.action or action_class(acted.lines),
            lines=dict(acted.lines),
            refused=acted.refused,
            stdout=clip(acted.stdout, RECORD_CHARS),
            stderr=clip(acted.stderr, RECORD_CHARS),
            error=error,
            timed_out=acted.timed_out,
            is_final=step.is_final_answer,
            screen=self.camera.paths.get(step.step_number),
            tokens=_tokens(call),
            is_cached=bool(call and call.is_cached),
            images_dropped=call.cut.images_dropped if call else 0,
            steps_cut=call.cut.steps_cut if call else 0,
            **self.meter.split(),
        )

    def _ending(self, step: Any, output: Any) -> Ending | None:
        if step.is_final_answer:
            said: SelfReport = "failed" if output.output == "FAIL" else "done"
            return Ending("completed", "final answer", answer=output.output, has_answer=True, self_report=said)
        if step.error and self.stops_at_error and not self.budget.is_out_of_time:
            why = str(step.error).strip().rsplit("\n", 1)[-1]
            if self.hands.acted.timed_out:
                why = "interrupted at its time limit"
            return Ending("agent_error", "script failed", error=f"cell {step.step_number} failed: {why}")
        return None


def _tokens(call: Call | None) -> TokenUsage | None:
    if call is None or call.input_tokens is None or call.output_tokens is None:
        return None
    return TokenUsage(input_tokens=call.input_tokens, output_tokens=call.output_tokens)
