"""The plain loop of Spider2-V and OSWorld: the model answers in text, and what stands in its fences is done."""

from collections.abc import Callable, Generator
from typing import Any

from smolagents import MultiStepAgent
from smolagents.agents import ActionOutput
from smolagents.utils import AgentExecutionError, AgentGenerationError

from deskfork.agent.actions.refusal import Refused
from deskfork.agent.actions.space import Parts
from deskfork.agent.executor import SilentLogger
from deskfork.core.errors import InfraError


class FencedAgent(MultiStepAgent):  # type: ignore[misc]  # smolagents ships no types
    """Asks the model for text and does what it says; memory and observations are smolagents'."""

    def __init__(self, parts: Parts, act: Callable[[str, Parts], "Outcome"]) -> None:
        """Make an agent.

        Args:
            parts: What it is made from.
            act: Does what a reply says; raises Refused.
        """
        self._system = parts.system_prompt
        self._parts = parts
        self._act = act
        super().__init__(
            tools=[], model=parts.model, step_callbacks=list(parts.callbacks), logger=SilentLogger(), max_steps=1
        )

    def initialize_system_prompt(self) -> str:
        """Return the system prompt."""
        return self._system

    def _step_stream(self, memory_step: Any) -> Generator[Any]:
        messages = self.write_memory_to_messages()
        memory_step.model_input_messages = messages
        try:
            reply = self.model.generate(messages)
        except InfraError as error:
            raise AgentGenerationError(str(error), self.logger) from error
        memory_step.model_output_message = reply
        memory_step.model_output = reply.content
        memory_step.token_usage = reply.token_usage
        try:
            outcome = self._act(reply.content or "", self._parts)
        except Refused as refusal:
            self._parts.hands.acted.refused = str(refusal)
            raise AgentExecutionError(f"Refused: {refusal}", self.logger) from refusal
        memory_step.observations = outcome.text or None
        memory_step.action_output = outcome.answer
        yield ActionOutput(output=outcome.answer, is_final_answer=outcome.is_final)


class Outcome:
    """What came of one reply."""

    def __init__(self, text: str = "", *, answer: str | None = None) -> None:
        """Note what came of a reply.

        Args:
            text: What the agent is told of it.
            answer: What it said at its end; None when it goes on.
        """
        self.text = text
        self.answer = answer

    @property
    def is_final(self) -> bool:
        """Whether the agent has ended itself."""
        return self.answer is not None
