"""One attempt at a trial: fork, set-up, agent, evaluation, closing; whatever happens in it ends as a result."""

import json
import time
import traceback
from datetime import UTC, datetime
from threading import Lock

from deskfork.agent.build import AgentOutcome, CacheUse, run_agent
from deskfork.agent.config import AgentConfig, ModelAgentConfig
from deskfork.agent.limits import Limits
from deskfork.core.errors import DeskforkError, EvaluationError, InfraError
from deskfork.core.tracing import trace_id
from deskfork.core.waiting import Deadline
from deskfork.records.recorder import TrialRecorder
from deskfork.records.sums import actions_of, lines_of, tokens_of
from deskfork.records.trajectory import StepRecord
from deskfork.records.trial import TrialResult, TrialStatus, Verdict
from deskfork.sandbox.base import Sandbox, SandboxFacts
from deskfork.setup.steps import SetupOutcome, run_post_setup, set_up
from deskfork.trial.evaluate import evaluate
from deskfork.trial.phases import Phases
from deskfork.trial.plan import TrialPlan, TrialSetting
from deskfork.trial.watch import WatchedGuest


class Attempt:
    """The trial boundary: errors stop here and become a status, a message and, where it says so, a score."""

    def __init__(self, plan: TrialPlan, setting: TrialSetting, number: int, earlier_losses: int) -> None:
        self._plan = plan
        self._setting = setting
        self._number = number
        self._earlier_losses = earlier_losses
        self._started_at = datetime.now(UTC)
        self._clock = time.monotonic()
        self._phases = Phases(plan, setting, number)
        self._facts: SandboxFacts | None = None
        self._outcome: AgentOutcome | None = None
        self._is_lost = False
        self._status: TrialStatus | None = None
        self._verdict: Verdict | None = None
        self._errors: list[str] = []
        self._steps: list[StepRecord] = []
        self._recording = Lock()

    def play(self, recorder: TrialRecorder) -> None:
        """Go through all phases; never raises for what goes wrong in them, and the sandbox is closed in any case."""
        self._steps = recorder.steps
        try:
            sandbox = self._fork()
            try:
                recorder.log(f"forked {self._plan.task.template} as {sandbox.facts.id}")
                self._setup(sandbox, recorder)
                self._let_agent_work(sandbox, recorder)
                self._evaluate(sandbox, recorder)
            finally:
                self._save_logs(sandbox, recorder)
                self._close(sandbox)
        except KeyboardInterrupt:
            self._setting.cancelled.set()
            self.cancel()
        except Exception as error:
            self._fail(error)
        for line in self._errors:
            recorder.log(line)

    @property
    def phase(self) -> str:
        """Where it is, or was last."""
        return self._phases.current

    def may_record(self) -> bool:
        """Return whether the caller is the first to ask, who alone writes the result."""
        return self._recording.acquire(blocking=False)

    def cancel(self) -> None:
        """Note that the attempt was cut off in whichever phase it is."""
        self._status = TrialStatus.CANCELLED
        self._verdict = Verdict(reason=f"cancelled in {self._phases.current}")
        self._errors.append(f"cancelled in {self._phases.current}")

    def fail_to_record(self, error: DeskforkError) -> None:
        """Note that the attempt's record is incomplete, which takes its score."""
        self._status = TrialStatus.INFRA_ERROR
        self._verdict = Verdict(reason=f"no record: {error}")
        if not any(str(error) in line for line in self._errors):
            self._errors.append(str(error))

    def result(self) -> TrialResult:
        """Sum up the attempt."""
        outcome, facts = self._outcome, self._facts
        verdict = self._verdict or Verdict(reason="the trial did not get to its evaluation")
        return TrialResult(
            task=self._plan.task.id,
            agent=self._plan.agent.name,
            model=self._plan.model,
            repeat=self._plan.repeat,
            attempt=self._number,
            status=self._status or TrialStatus.INFRA_ERROR,
            score=verdict.score,
            strict_score=verdict.strict_score,
            verdict=verdict,
            error="; ".join(line.split("\n", 1)[0] for line in self._errors),
            ending=outcome.reason if outcome else "",
            answer=outcome.answer if outcome else None,
            self_report=outcome.self_report if outcome else None,
            steps=outcome.steps if outcome else len(self._steps),
            tokens=outcome.tokens if outcome else tokens_of(self._steps),
            cost_usd=outcome.cost_usd if outcome else self._plan.cost_usd(tokens_of(self._steps)),
            duration_s=time.monotonic() - self._clock,
            phases_s=dict(self._phases.seconds),
            action_mix=actions_of(self._steps),
            line_mix=lines_of(self._steps),
            started_at=self._started_at,
            provider=self._setting.provider.name,
            template_digest=facts.template_digest if facts else "",
            sandbox=facts.id if facts else "",
            trace_id=trace_id(),
        )

    def _fork(self) -> Sandbox:
        task = self._plan.task
        with self._phases.entered("fork"):
            sandbox = self._setting.provider.fork(
                task.template, network=task.network or self._setting.network, baked=self._plan.setup_key
            )
        self._facts = sandbox.facts
        return sandbox

    def _setup(self, sandbox: Sandbox, recorder: TrialRecorder) -> None:
        with self._phases.entered("setup"):
            if sandbox.facts.baked:
                recorder.log("set-up: baked, nothing to do")
                return
            done = set_up(self._plan.task, sandbox, timeout_s=self._setting.setup_timeout_s)
            _log_steps(done, recorder)

    def _post_setup(self, sandbox: Sandbox, recorder: TrialRecorder) -> None:
        task, deadline = self._plan.task, Deadline.after(self._setting.setup_timeout_s)
        steps = task.evaluator.post_setup
        _log_steps(run_post_setup(steps, sandbox, root=task.root, deadline=deadline, task=task.id), recorder)

    def _let_agent_work(self, sandbox: Sandbox, recorder: TrialRecorder) -> None:
        guest = WatchedGuest(sandbox)
        with self._phases.entered("agent"):
            agent, limits = self._bounded_agent()
            try:
                self._outcome = run_agent(
                    agent,
                    instruction=self._plan.task.instruction,
                    guest=guest,
                    solution_cells=self._plan.solution_cells,
                    limits=limits,
                    screens=recorder.screens,
                    on_step=lambda step: self._after_step(step, recorder),
                    cache=self._cache(),
                    outside=self._setting.ledger.spent,
                )
            except InfraError:
                # Asked before the sandbox is closed, when it would look dead in any case.
                self._is_lost = guest.is_lost()
                raise
        self._status = TrialStatus(self._outcome.status)
        if self._outcome.error:
            self._errors.append(self._outcome.error)
        done = self._outcome
        recorder.write_messages(json.dumps(done.messages, indent=1, ensure_ascii=False) + "\n")
        recorder.log(f"agent: {done.status} ({done.reason}) after {done.steps} steps")

    def _bounded_agent(self) -> tuple[AgentConfig, Limits]:
        """Return the agent and its limits, no wider than what is left of the run's budget."""
        agent, ledger = self._plan.agent, self._setting.ledger
        if not isinstance(agent, ModelAgentConfig):
            return agent, ledger.within(self._setting.limits)
        limits = ledger.within(agent.limits or self._setting.limits)
        return agent.model_copy(update={"limits": limits}), limits

    def _cache(self) -> CacheUse | None:
        folder = self._setting.cache
        return CacheUse(folder, f"repeat {self._plan.repeat}") if folder else None

    def _after_step(self, step: StepRecord, recorder: TrialRecorder) -> None:
        recorder.add_step(step)
        self._setting.ledger.book(step.tokens, self._plan.price)
        self._phases.tell("agent", step.step)
        self._phases.check_cancelled()

    def _evaluate(self, sandbox: Sandbox, recorder: TrialRecorder) -> None:
        with self._phases.entered("evaluate"):
            self._verdict = evaluate(
                self._plan.task,
                sandbox,
                self._setting.provider,
                recorder.paths,
                run_post_setup=lambda: self._post_setup(sandbox, recorder),
                before_end=lambda: self._save_logs(sandbox, recorder),
                evaluations=self._setting.evaluations,
                keep_state=self._setting.keep_state,
            )
        scores = f"{self._verdict.score} (strict: {self._verdict.strict_score})"
        recorder.log(f"score: {scores} {self._verdict.reason or self._verdict.difference}".rstrip())

    def _save_logs(self, sandbox: Sandbox, recorder: TrialRecorder) -> None:
        if "logs" in self._phases.seconds:
            return
        with self._phases.timed("logs"):
            try:
                sandbox.save_logs(recorder.paths.logs)
            except (DeskforkError, OSError) as error:
                # They explain a result and are no part of it.
                recorder.log(f"logs of {sandbox.facts.id}: {error}")

    def _close(self, sandbox: Sandbox) -> None:
        with self._phases.timed("close"):
            try:
                sandbox.close()
            except DeskforkError as error:
                self._errors.append(f"closing {sandbox.facts.id}: {error}")

    def _fail(self, error: Exception) -> None:
        if self._setting.cancelled.is_set():
            # A run that is cancelled closes its sandboxes under the trials that are still at work.
            self.cancel()
            return
        if isinstance(error, EvaluationError):
            self._verdict = Verdict(reason=str(error))
            self._errors.append(f"evaluation: {error}")
            return
        self._status = TrialStatus.SANDBOX_LOST if self._is_lost else TrialStatus.INFRA_ERROR
        if isinstance(error, DeskforkError):
            # What set-up raises begins with its own name.
            what = str(error) if self._phases.current == "setup" else f"{self._phases.current}: {error}"
            self._errors.append(what)
        else:
            what = f"{self._phases.current}: unexpected {type(error).__name__}: {error}"
            self._errors.append(f"{what}\n{''.join(traceback.format_exception(error))}")
        self._verdict = Verdict(reason=what)
        if self._is_lost and self._earlier_losses:
            self._verdict = Verdict(
                score=0.0,
                strict_score=0.0,
                reason="the sandbox died in the agent's own cells again, so the agent is taken to have destroyed it",
            )


def _log_steps(done: list[SetupOutcome], recorder: TrialRecorder) -> None:
    for step in done:
        how = " (open already, completed)" if step.is_recognised else ""
        recorder.log(f"set-up: {step.step}{how} in {step.duration_s:.2f} s")
