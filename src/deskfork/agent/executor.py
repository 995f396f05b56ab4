"""Runs a smolagents agent's code in the guest's kernel; nothing but text and JSON ever comes back."""

import json
from dataclasses import dataclass
from typing import Any

from smolagents import AgentLogger, LogLevel, PythonExecutor
from smolagents.local_python_executor import CodeOutput
from smolagents.utils import AgentExecutionError

from deskfork.agent.limits import Budget
from deskfork.agent.meter import StepMeter
from deskfork.agent.prelude import MAX_ANSWER_CHARS, PRELUDE, STOPPED
from deskfork.agent.text import clip
from deskfork.core.errors import ConfigError, TransportError
from deskfork.core.tracing import span
from deskfork.core.types import FINAL_ANSWER_MIME, CellResult, RichOutput
from deskfork.sandbox.base import Guest

PRELUDE_TIMEOUT_S = 30.0
MIN_TIMEOUT_S = 1.0
SPAN_TEXT_CHARS = 2000


class SilentLogger(AgentLogger):  # type: ignore[misc]  # smolagents ships no types
    """Prints nothing, and builds nothing to print."""

    def __init__(self) -> None:
        super().__init__(level=LogLevel.OFF)

    def log(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing."""

    log_error = log_markdown = log_code = log_rule = log_task = log_messages = log


@dataclass(frozen=True)
class CellLimits:
    """Bounds on one cell of an agent."""

    timeout_s: float
    output_chars: int
    """How much of a cell's output the agent gets to see."""


class GuestExecutor(PythonExecutor):  # type: ignore[misc]  # smolagents ships no types
    """The executor of a CodeAgent whose Python runs in a guest.

    A cell that fails raises smolagents' AgentExecutionError, which the agent sees. Everything else that leaves a call
    is our own failure and must end the run.
    """

    def __init__(self, guest: Guest, limits: CellLimits, budget: Budget, meter: StepMeter) -> None:
        self._guest = guest
        self._limits = limits
        self._budget = budget
        self._meter = meter
        self._logger = SilentLogger()
        self._has_prelude = False
        self.last: CellResult | None = None
        """What the latest cell did; None when there was none since `forget`."""

    def forget(self) -> None:
        """Make ready for the next step."""
        self.last = None

    def send_tools(self, tools: dict[str, Any]) -> None:
        """Accept `final_answer`, which the guest gets by our own prelude, and no other tool."""
        if others := set(tools) - {"final_answer"}:
            raise ConfigError(f"tools cannot be sent into the guest: {', '.join(sorted(others))}")

    def send_variables(self, variables: dict[str, Any]) -> None:
        """Accept no variables."""
        if variables:
            raise ConfigError(f"variables cannot be sent into the guest: {', '.join(sorted(variables))}")

    def __call__(self, code_action: str) -> Any:
        """Run one cell of the agent.

        Returns:
            smolagents' CodeOutput: the last displayed value as text, or the final answer.

        Raises:
            AgentExecutionError: The cell failed or overran; the text is for the agent.
            KernelLost: The kernel died in it.
            TransportError: The kernel did not answer as agreed.
        """
        attributes = {"openinference.span.kind": "TOOL", "tool.name": "python_interpreter"}
        attributes |= {"input.value": code_action[:SPAN_TEXT_CHARS], "input.mime_type": "text/x-python"}
        with span("guest execution", {**attributes, "deskfork.code_length": len(code_action)}) as current:
            with self._meter.charge("guest"):
                self._install_prelude()
                result = self._guest.run_cell(code_action, timeout_s=self._timeout_s())
            self.last = result
            current.set_attribute("output.value", result.stdout[:SPAN_TEXT_CHARS])
            current.set_attribute("deskfork.timed_out", result.timed_out)
            current.set_attribute("deskfork.cell_error", result.error.name if result.error else "")
        return self._judge(result)

    def _timeout_s(self) -> float:
        return max(MIN_TIMEOUT_S, min(self._limits.timeout_s, self._budget.deadline.remaining_s))

    def _install_prelude(self) -> None:
        if self._has_prelude:
            return
        # A cell of its own: glued to the agent's, it would be lost with a syntax error and shift the traceback's lines.
        result = self._guest.run_cell(PRELUDE, timeout_s=PRELUDE_TIMEOUT_S)
        if result.error or result.timed_out:
            what = result.error.traceback[-500:] if result.error else f"no end in {PRELUDE_TIMEOUT_S:.0f} s"
            raise TransportError(f"the guest's kernel refused the cell that defines final_answer: {what}")
        self._has_prelude = True

    def _judge(self, result: CellResult) -> Any:
        payload = _answer_payload(result)
        logs = self._logs(result)
        if payload is not None:
            try:
                return CodeOutput(output=parse_answer(payload), logs=logs, is_final_answer=True)
            except ValueError as exc:
                raise AgentExecutionError(f"{logs}\nfinal_answer was not understood: {exc}", self._logger) from exc
        if result.timed_out or result.error:
            raise AgentExecutionError(self._failure(result, logs), self._logger)
        shown = "\n".join(filter(None, map(_described, result.outputs)))
        return CodeOutput(output=clip(shown, self._limits.output_chars) or None, logs=logs, is_final_answer=False)

    def _logs(self, result: CellResult) -> str:
        parts = [clip(result.stdout, self._limits.output_chars)]
        if result.stderr:
            parts.append("[stderr]\n" + clip(result.stderr, self._limits.output_chars // 4))
        if result.is_truncated:
            parts.append("[the cell printed more than is kept; the rest was dropped]")
        return "\n".join(filter(None, parts))

    def _failure(self, result: CellResult, logs: str) -> str:
        parts = [f"Execution logs:\n{logs}"] if logs else []
        if result.timed_out:
            parts.append(
                f"The cell was interrupted after {result.duration_s:.0f} s, its time limit. The kernel kept its state:"
                " variables and imports are still there. Split long work into steps, or run it in the background."
            )
        if result.error:
            trace = result.error.traceback or f"{result.error.name}: {result.error.value}"
            parts.append(clip(trace, self._limits.output_chars // 2))
        return "\n".join(parts)


def parse_answer(payload: str) -> Any:
    """Return the value that `final_answer` was called with.

    Raises:
        ValueError: The payload, which the guest wrote, is too long or not what the prelude writes.
    """
    if len(payload) > 2 * MAX_ANSWER_CHARS:
        raise ValueError(f"it is longer than {MAX_ANSWER_CHARS} characters")
    try:
        value = json.loads(payload)
    except RecursionError as exc:
        raise ValueError("it is nested too deeply") from exc
    if not isinstance(value, dict) or set(value) != {"answer"}:
        raise ValueError("call final_answer(...) instead of displaying its output type")
    return value["answer"]


def _answer_payload(result: CellResult) -> str | None:
    """Return what the cell's first `final_answer` published; if that output was captured, its exception has it too."""
    for output in result.outputs:
        if output.mime == FINAL_ANSWER_MIME and isinstance(output.content, str):
            return output.content
    return result.error.value if result.error and result.error.name == STOPPED else None


def _described(output: RichOutput) -> str:
    if output.mime == "text/plain":
        return str(output.content)
    if isinstance(output.content, bytes):
        return f"{output.text} [{output.mime}, {len(output.content)} bytes]".strip()
    return output.text or output.content
