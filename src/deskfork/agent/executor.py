"""Runs a smolagents CodeAgent's code in the guest's kernel; nothing but text and JSON ever comes back."""

import json
import re
from collections.abc import Callable
from typing import Any

from smolagents import AgentLogger, LogLevel, PythonExecutor
from smolagents.local_python_executor import CodeOutput
from smolagents.utils import AgentExecutionError

from deskfork.agent.actions.lines import LineClassifier
from deskfork.agent.actions.refusal import Refused
from deskfork.agent.hands import Hands
from deskfork.agent.prelude import MAX_ANSWER_CHARS, STOPPED, marks_cell
from deskfork.agent.text import clip
from deskfork.agent.view import View
from deskfork.core.errors import ConfigError
from deskfork.core.types import FINAL_ANSWER_MIME, CellResult, RichOutput

_MARK = re.compile(r"\bmark_(\d{1,6})\b")


class SilentLogger(AgentLogger):  # type: ignore[misc]  # smolagents ships no types
    """Prints nothing, and builds nothing to print."""

    def __init__(self) -> None:
        super().__init__(level=LogLevel.OFF)

    def log(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing."""

    log_error = log_markdown = log_code = log_rule = log_task = log_messages = log


class GuestExecutor(PythonExecutor):  # type: ignore[misc]  # smolagents ships no types
    """The executor of a CodeAgent whose Python runs in a guest.

    A cell that fails raises smolagents' AgentExecutionError, which the agent sees. Everything else that leaves a call
    is our own failure and must end the run.
    """

    def __init__(self, hands: Hands, view: View, check: Callable[[str], None] | None = None) -> None:
        """Run cells by `hands`.

        Args:
            hands: The way into the guest.
            view: What the agent sees; a cell may name the marks in it.
            check: Raises Refused for code that the action space forbids.
        """
        self._hands = hands
        self._view = view
        self._check = check
        self._lines = LineClassifier()
        self._logger = SilentLogger()

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
            AgentExecutionError: The cell was refused, failed or overran; the text is for the agent.
            KernelLost: The kernel died in it.
            TransportError: The kernel did not answer as agreed.
        """
        acted = self._hands.acted
        acted.code = code_action
        if self._check is not None:
            try:
                self._check(code_action)
            except Refused as refusal:
                acted.refused = str(refusal)
                raise AgentExecutionError(f"Refused, nothing was run: {refusal}", self._logger) from None
        acted.lines.update(self._lines.count(code_action))
        acted.action = self._lines.classify(code_action)
        return self._judge(self._hands.run(code_action, our_own=self._marks_in(code_action)))

    def _marks_in(self, code: str) -> str:
        named = {int(number) for number in _MARK.findall(code)} & self._view.marks.keys()
        return marks_cell({number: self._view.shown(*self._view.marks[number]) for number in sorted(named)})

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
        return CodeOutput(output=self._shown(result), logs=logs, is_final_answer=False)

    def _logs(self, result: CellResult) -> str:
        return printed(result, self._hands.limits.output_chars) if self._hands.shows_output else ""

    def _shown(self, result: CellResult) -> str | None:
        shown = "\n".join(filter(None, map(_described, result.outputs))) if self._hands.shows_output else ""
        return clip(shown, self._hands.limits.output_chars) or None

    def _failure(self, result: CellResult, logs: str) -> str:
        return "\n".join(filter(None, [f"Execution logs:\n{logs}" if logs else "", failure(result, self._hands)]))


def printed(result: CellResult, limit: int) -> str:
    """Return what a cell printed, as the agent gets to see it."""
    parts = [clip(result.stdout, limit)]
    if result.stderr:
        parts.append("[stderr]\n" + clip(result.stderr, limit // 4))
    if result.is_truncated:
        parts.append("[the cell printed more than is kept; the rest was dropped]")
    return "\n".join(filter(None, parts))


def failure(result: CellResult, hands: Hands) -> str:
    """Return, for the agent, how a cell failed; empty when it did not."""
    parts = []
    if result.timed_out:
        parts.append(
            f"The cell was interrupted after {result.duration_s:.0f} s, its time limit. The kernel kept its state:"
            " variables and imports are still there. Split long work into steps, or run it in the background."
        )
    if result.error:
        trace = result.error.traceback or f"{result.error.name}: {result.error.value}"
        parts.append(clip(trace, hands.limits.output_chars // 2))
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
