"""The agent of the tool-call spaces: smolagents' ToolCallingAgent, whose calls are done in the order they were made."""

from collections.abc import Callable, Generator, Mapping
from typing import Any

from smolagents import Tool, ToolCallingAgent
from smolagents.agents import EMPTY_PROMPT_TEMPLATES, ToolCall, ToolOutput
from smolagents.utils import AgentExecutionError

from deskfork.agent.actions.refusal import Refused
from deskfork.agent.actions.space import Parts
from deskfork.agent.executor import SilentLogger

MAX_CALLS = 20
"""Tool calls of one reply; a step is meant to be one act, or a few that belong together."""


class GuestTool(Tool):  # type: ignore[misc]  # smolagents ships no types
    """A tool that acts on the guest."""

    skip_forward_signature_validation = True
    output_type = "string"
    name = "guest_tool"
    description = ""
    inputs: dict[str, Any] = {}  # noqa: RUF012  # smolagents wants it on the class

    def __init__(
        self, name: str, description: str, inputs: Mapping[str, Any], act: Callable[[dict[str, Any]], str]
    ) -> None:
        """Make a tool.

        Args:
            name: What the model calls it by.
            description: For the model.
            inputs: JSON schema of each argument.
            act: Does it and tells the agent what came of it; raises Refused.
        """
        self.name = name
        self.description = description
        self.inputs = dict(inputs)
        self.act = act
        super().__init__()

    def forward(self, **arguments: Any) -> str:
        """Do it."""
        return self.act(arguments)


class ToolAgent(ToolCallingAgent):  # type: ignore[misc]  # smolagents ships no types
    """Does the calls of a reply one after the other and stops at the first that is refused.

    smolagents would do them all at once, in threads: clicks and keys have an order.
    """

    def __init__(self, parts: Parts, tools: list[GuestTool]) -> None:
        self._parts = parts
        super().__init__(
            tools=tools,
            model=parts.model,
            prompt_templates={**EMPTY_PROMPT_TEMPLATES, "system_prompt": parts.system_prompt},
            step_callbacks=list(parts.callbacks),
            logger=SilentLogger(),
        )

    def initialize_system_prompt(self) -> str:
        """Return the system prompt."""
        return self._parts.system_prompt

    def process_tool_calls(self, chat_message: Any, memory_step: Any) -> Generator[Any]:
        """Do a reply's calls.

        Raises:
            AgentExecutionError: A call was refused; those before it were done.
        """
        calls = [
            # Ids of the model's own may be missing or equal.
            ToolCall(name=call.function.name, arguments=call.function.arguments, id=f"call_{number}")
            for number, call in enumerate(chat_message.tool_calls[: MAX_CALLS + 1], start=1)
        ]
        memory_step.tool_calls = calls
        told: list[str] = []
        try:
            if len(calls) > MAX_CALLS:
                raise Refused(f"more than {MAX_CALLS} tool calls in one step; nothing was done")
            for call in calls:
                yield call
                answer = self._do(call, is_alone=len(calls) == 1)
                told.append(answer)
                is_final = call.name == "final_answer"
                yield ToolOutput(
                    id=call.id, output=answer, is_final_answer=is_final, observation=answer, tool_call=call
                )
        except Refused as refusal:
            self._parts.hands.acted.refused = str(refusal)
            raise AgentExecutionError(f"Refused: {refusal}", self.logger) from refusal
        finally:
            memory_step.observations = "\n".join(filter(None, told)) or None

    def _do(self, call: Any, *, is_alone: bool) -> str:
        arguments = {} if call.arguments is None or call.arguments == "" else call.arguments
        if call.name not in self.tools:
            raise Refused(f"there is no tool {call.name!r}; there are: {', '.join(self.tools)}")
        if not isinstance(arguments, dict):
            raise Refused(f"{call.name}: its arguments must be a JSON object, not {str(arguments)[:200]!r}")
        if call.name == "final_answer":
            if not is_alone:
                raise Refused("final_answer must be the only tool call of its step")
            return str(arguments.get("answer", ""))
        known = self.tools[call.name].inputs
        if unknown := sorted(set(arguments) - set(known)):
            raise Refused(f"{call.name}: unknown argument {unknown[0]!r}; it takes: {', '.join(known) or 'none'}")
        given = {name: value for name, value in arguments.items() if value is not None}
        if missing := [name for name, how in known.items() if not how.get("nullable") and name not in given]:
            raise Refused(f"{call.name}: the argument {missing[0]!r} is missing")
        return str(self.tools[call.name].act(given))
