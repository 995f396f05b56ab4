"""What an action space's agent acts with: the guest's kernel and shell, and a note of what each step did there."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NoReturn

from deskfork.agent.actions.refusal import Refused
from deskfork.agent.limits import Budget
from deskfork.agent.meter import StepMeter
from deskfork.agent.prelude import PRELUDE
from deskfork.core.errors import TransportError
from deskfork.core.tracing import span
from deskfork.core.types import CellResult, CommandResult
from deskfork.records.trajectory import ActionClass, LineClass
from deskfork.sandbox.base import Guest

PRELUDE_TIMEOUT_S = 30.0
MIN_TIMEOUT_S = 1.0
SPAN_TEXT_CHARS = 2000


@dataclass(frozen=True)
class ActLimits:
    """Bounds on one act of an agent."""

    timeout_s: float
    output_chars: int
    """How much of an act's output the agent gets to see."""


@dataclass
class Acted:
    """What an agent did in one step, as far as it got."""

    code: str | None = None
    """The parsed action: Python, or one JSON object a line."""
    action: ActionClass | None = None
    """What its lines amount to, where that takes more than counting them."""
    lines: Counter[LineClass] = field(default_factory=Counter)
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    refused: str | None = None


class Hands:
    """Acts on one guest, within the limits, on the meter."""

    def __init__(self, guest: Guest, limits: ActLimits, budget: Budget, meter: StepMeter) -> None:
        self.guest = guest
        self.limits = limits
        self.shows_output = False
        """Whether the agent observes what its acts print (`terminal`)."""
        self.acted = Acted()
        self._budget = budget
        self._meter = meter
        self._openings = [PRELUDE]

    def forget(self) -> None:
        """Make ready for the next step."""
        self.acted = Acted()

    def prepare(self, cell: str) -> None:
        """Have a cell of our own run in the kernel before the agent's first."""
        self._openings.append(cell)

    def refuse(self, why: str) -> NoReturn:
        """Note that the agent was refused something, and why.

        Raises:
            Refused: Always.
        """
        self.acted.refused = why
        raise Refused(why)

    def run(self, code: str, *, our_own: str = "") -> CellResult:
        """Run code for the agent in the guest's kernel.

        Args:
            code: Python; it may overrun its time, and is interrupted then.
            our_own: A cell that must have run before it: names that the code may use.

        Raises:
            KernelLost: The kernel died in it.
            TransportError: The kernel did not answer as agreed.
        """
        attributes = {"openinference.span.kind": "TOOL", "tool.name": "python_interpreter"}
        attributes |= {"input.value": code[:SPAN_TEXT_CHARS], "input.mime_type": "text/x-python"}
        with span("guest execution", {**attributes, "deskfork.code_length": len(code)}) as current:
            with self._meter.charge("guest"):
                self._open()
                if our_own:
                    self._run_our_own(our_own)
                result = self.guest.run_cell(code, timeout_s=self._timeout_s())
            current.set_attribute("output.value", result.stdout[:SPAN_TEXT_CHARS])
            current.set_attribute("deskfork.timed_out", result.timed_out)
            current.set_attribute("deskfork.cell_error", result.error.name if result.error else "")
        self._note(result.stdout, result.stderr, result.timed_out)
        return result

    def command(self, script: str) -> CommandResult:
        """Run a Bash script for the agent, in the Desktop folder.

        Raises:
            SandboxError: The guest is not running.
            TransportError: sshd never took it.
        """
        attributes = {"openinference.span.kind": "TOOL", "tool.name": "bash", "input.value": script[:SPAN_TEXT_CHARS]}
        with span("guest command", attributes) as current, self._meter.charge("guest"):
            done = self.guest.exec(["bash", "-c", f"cd ~/Desktop\n{script}"], timeout_s=self._timeout_s())
            current.set_attribute("deskfork.exit_code", done.exit_code)
        self._note(done.stdout, done.stderr, done.timed_out)
        return done

    def _note(self, stdout: str, stderr: str, timed_out: bool) -> None:
        self.acted.stdout += stdout
        self.acted.stderr += stderr
        self.acted.timed_out |= timed_out

    def _timeout_s(self) -> float:
        return max(MIN_TIMEOUT_S, min(self.limits.timeout_s, self._budget.deadline.remaining_s))

    def _open(self) -> None:
        # Cells of their own: glued to the agent's, they would be lost with a syntax error and shift its traceback.
        while self._openings:
            self._run_our_own(self._openings[0])
            del self._openings[0]

    def _run_our_own(self, cell: str) -> None:
        result = self.guest.run_cell(cell, timeout_s=PRELUDE_TIMEOUT_S)
        if result.error or result.timed_out:
            what = result.error.traceback[-500:] if result.error else f"no end in {PRELUDE_TIMEOUT_S:.0f} s"
            raise TransportError(f"the guest's kernel refused a cell of deskfork's own: {what}")
