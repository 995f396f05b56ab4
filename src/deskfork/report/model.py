"""What a report says, as JSON; every table and picture is made from it."""

from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import Field

from deskfork.core.config import StrictModel
from deskfork.records.trial import SelfReport
from deskfork.report.statistics.logistic import LogisticFit
from deskfork.report.statistics.paired import Discordance, MeanDifference, SignedRank
from deskfork.report.statistics.rates import Rate
from deskfork.report.statistics.repeats import PassAt
from deskfork.report.trial import TrialReport

Which = Literal["score", "strict"]
"""The benchmark's own verdict, or whether what the task asks for was done."""
AgentKind = Literal["model", "oracle", "null", "replay", "unknown"]


class RunSource(StrictModel):
    """One run that a report is made from."""

    run_id: str
    label: str
    """Its short name in this report."""
    folder: Path
    created_at: datetime | None
    """None when the run was cut off before it wrote what it was made with; so are the others."""
    provider: str | None
    templates: dict[str, str]
    """Digests by name."""
    commit: str | None
    skipped: dict[str, str]
    """Why a task was left out, by its id."""


class Spread(StrictModel):
    """How a quantity is spread over trials."""

    known: int
    unknown: int
    """Trials of which it is not known; they are in no figure here."""
    median: float | None
    low_quartile: float | None
    high_quartile: float | None
    total: float | None
    """None when that of one trial is unknown."""


class Absence(StrictModel):
    """Trials without a score, for one reason."""

    status: str
    reason: str
    trials: int


class Confusion(StrictModel):
    """What the agent said of its trials, against what they were scored; trials without a score are apart."""

    done_success: int
    done_failure: int
    """False positives: it said done, and was not."""
    failed_success: int
    failed_failure: int
    silent_success: int
    """False negatives: it ran out, or was cut off, although it had done the task."""
    silent_failure: int
    absent: int


class ActionMix(StrictModel):
    """What successful and failed trials consist of."""

    steps_success: dict[str, int]
    """Steps by class (see ActionClass), over all successes."""
    steps_failure: dict[str, int]
    lines_success: dict[str, int]
    """Lines of code by class (see LineClass)."""
    lines_failure: dict[str, int]
    gui_ratio_success: float | None
    """Median over successes of the share of GUI lines in a trial; None when no success has any lines."""
    gui_ratio_failure: float | None
    fit: LogisticFit
    """Of success on that share, over trials with a score and at least one line."""


class FailureMode(StrictModel):
    """In how many of an agent's trials a rule holds."""

    rule: str
    successes: int
    failures: int
    absent: int
    """Trials without a score."""
    occurrences: int
    """Places in all of them."""


class GroupRate(StrictModel):
    """An agent's trials of one kind of task."""

    name: str
    trials: int
    success: Rate
    strict_success: Rate
    mean_score: float | None


class AgentSummary(StrictModel):
    """All trials of one agent in one run."""

    agent: str
    """As the report calls it: its name, with its run where another run has one of that name."""
    kind: AgentKind
    run: str
    """Label of its run."""
    model: str | None
    trials: int
    tasks: int
    scored: int
    absent: tuple[Absence, ...]
    statuses: dict[str, int]
    success: Rate
    strict_success: Rate
    mean_score: float | None
    mean_strict_score: float | None
    passes: tuple[PassAt, ...]
    """By the benchmark's verdict; empty when no task was repeated."""
    strict_passes: tuple[PassAt, ...]
    steps: Spread
    tokens: Spread
    cost_usd: Spread
    duration_s: Spread
    phases_s: dict[str, Spread]
    """By phase; a trial that did not get to a phase is not in its figures."""
    agent_phase_s: dict[str, Spread]
    """The agent's phase by what it was spent on: model, guest, observe, framework."""
    self_report: Confusion
    actions: ActionMix
    failure_modes: tuple[FailureMode, ...]
    """Those that hold at least once."""
    by_tag: tuple[GroupRate, ...]
    by_evaluator: tuple[GroupRate, ...]
    """By metric of the evaluator, as far as trials got to their evaluation."""
    by_pair: tuple[GroupRate, ...]
    """By goal that is worded twice, both wordings together."""
    by_wording: tuple[GroupRate, ...]

    @property
    def is_bound(self) -> bool:
        """Whether it is no contestant: the floor or the ceiling."""
        return self.kind in ("oracle", "null")


class Comparison(StrictModel):
    """Two agents at the tasks that both have scores of, by one verdict."""

    first: str
    second: str
    verdict: Which
    tasks: int
    tasks_dropped: int
    """Tasks that one of them, or both, have no scored trial of; they are in no figure here."""
    trials_dropped: int
    """Pairs of trials of which one, or both, have no score or are not there."""
    first_mean: float | None
    """Mean over those tasks of the mean score."""
    second_mean: float | None
    mean: MeanDifference | None
    """First less second; None when no task is left."""
    signed_rank: SignedRank
    signed_rank_p_holm: float | None
    """Corrected for the number of comparisons by the same verdict."""
    mcnemar: Discordance
    mcnemar_p_holm: float | None


class ReportedTrial(TrialReport):
    """One trial, and what the report found in it; `agent` is the report's name for it."""

    run: str
    """Label of its run."""
    self_report: SelfReport | None
    gui_ratio: float | None
    """Share of GUI lines; None when it has no lines."""
    failure_modes: dict[str, int | None] = Field(default_factory=dict)
    """Rules that hold for it, each with the first step that shows it."""
    failure_details: dict[str, str] = Field(default_factory=dict)
    """What there is to say of them."""


class Report(StrictModel):
    """A report on one or more runs."""

    runs: tuple[RunSource, ...]
    warnings: tuple[str, ...]
    """What limits its worth: runs that were not made alike, and what could not be found out."""
    agents: tuple[AgentSummary, ...]
    """Bounds last."""
    comparisons: tuple[Comparison, ...]
    trials: tuple[ReportedTrial, ...]
