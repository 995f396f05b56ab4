"""A report as tables: the same in a terminal, in Markdown and on the page."""

from deskfork.report import agent_tables
from deskfork.report.figures_text import (
    NOTHING,
    amount,
    interval_text,
    p_text,
    percent,
    rate_text,
    signed,
)
from deskfork.report.model import Comparison, Report
from deskfork.report.section import Section
from deskfork.report.words import number


def sections(report: Report) -> list[Section]:
    """Return a report's tables, all but the list of trials; those that would be empty are left out."""
    about = (_success, _absent, _passes, _comparisons)
    made = [table(report) for table in (*about, *agent_tables.TABLES)]
    return [section for section in made if section.rows]


def headline(report: Report) -> str:
    """Return what the report is on, in a line."""
    runs = ", ".join(f"{run.run_id} ({run.label})" if len(report.runs) > 1 else run.run_id for run in report.runs)
    agents = "1 agent" if len(report.agents) == 1 else f"{len(report.agents)} agents"
    return f"Report on {runs}: {len(report.trials)} trials of {agents}"


def trial_section(report: Report) -> Section:
    """Return the list of trials."""
    rows = [
        (trial.task, trial.wording or NOTHING, trial.agent, str(trial.repeat), trial.status, number(trial.score),
         number(trial.strict_score), trial.self_report or NOTHING, NOTHING if trial.steps is None else str(trial.steps),
         amount(trial.duration_s), _modes(trial.failure_modes), trial.reason if trial.score is None else "")
        for trial in report.trials
    ]  # fmt: skip
    headers = ("task", "wording", "agent", "n", "status", "score", "strict", "said", "steps", "seconds",
               "failure modes (step)", "why there is no score")  # fmt: skip
    return Section("trials", "Trials", "", headers, tuple(rows))


def _modes(modes: dict[str, int | None]) -> str:
    return ", ".join(rule if step is None else f"{rule} ({step})" for rule, step in modes.items())


def _success(report: Report) -> Section:
    rows = [
        (agent.agent, agent.model or agent.kind, str(agent.trials), str(agent.scored), str(agent.trials - agent.scored),
         rate_text(agent.success), rate_text(agent.strict_success), number(agent.mean_score))
        for agent in report.agents
    ]  # fmt: skip
    note = (
        "Share of trials with the full score, of those that have a score, with 95 % Wilson intervals: by the"
        " benchmark's own evaluator, and strictly by what the task asks for. oracle and null are bounds: they run the"
        " task's solution, and do nothing."
    )
    headers = ("agent", "model", "trials", "scored", "no score", "success", "strict success", "mean score")
    return Section("success", "Success", note, headers, tuple(rows))


def _absent(report: Report) -> Section:
    rows = [
        (agent.agent, absence.status, str(absence.trials), absence.reason)
        for agent in report.agents
        for absence in agent.absent
    ]
    note = "They are counted here, in no rate, and never as 0."
    return Section("absent", "Trials without a score", note, ("agent", "status", "trials", "why"), tuple(rows))


def _passes(report: Report) -> Section:
    rows = [
        (agent.agent, str(each.k), str(each.tasks), str(each.left_out), percent(each.any_of), percent(each.all_of),
         percent(strict.any_of) if strict else NOTHING, percent(strict.all_of) if strict else NOTHING)
        for agent in report.agents
        for each in agent.passes
        for strict in [next((one for one in agent.strict_passes if one.k == each.k), None)]
    ]  # fmt: skip
    note = (
        "Of k trials of a task, one at least succeeds (pass@k, unbiased: Chen et al. 2021), or all do (pass^k:"
        " tau-bench). Tasks with fewer than k scored trials are left out."
    )
    headers = ("agent", "k", "tasks", "left out", "pass@k", "pass^k", "strict pass@k", "strict pass^k")
    return Section("repeats", "Repeats", note, headers, tuple(rows))


def _comparisons(report: Report) -> Section:
    note = (
        "Differences of the mean score over tasks, first less second, with a 95 % interval from a bootstrap that draws"
        " pairs of wordings whole. Wilcoxon: signed ranks of the tasks' means, with the matched-pairs rank-biserial"
        " correlation r. McNemar: exact, on trials of the same task and repeat, with Cohen's h; then the trials that"
        " only the first, and only the second, succeeded in. p is Holm-corrected for the number of comparisons. Tasks"
        " and pairs of trials that one of both has no score for are dropped."
    )
    headers = ("agents", "verdict", "tasks", "mean scores", "difference [95 %]", "Wilcoxon", "McNemar")
    return Section("comparisons", "Comparisons", note, headers, tuple(map(_comparison, report.comparisons)))


def _comparison(found: Comparison) -> tuple[str, ...]:
    mean, ranks, matched = found.mean, found.signed_rank, found.mcnemar
    counts = f"{matched.only_first} : {matched.only_second} of {matched.trials}{_dropped(found.trials_dropped)}"
    return (
        f"{found.first} - {found.second}",
        found.verdict,
        f"{found.tasks}{_dropped(found.tasks_dropped)}",
        f"{number(found.first_mean)}, {number(found.second_mean)}" if mean else NOTHING,
        f"{signed(mean.difference)} {interval_text(mean.low, mean.high)}" if mean else NOTHING,
        f"p {p_text(found.signed_rank_p_holm)}, r {signed(ranks.rank_biserial, 2)}"
        if ranks.nonzero
        else "no task differs",
        f"p {p_text(found.mcnemar_p_holm)}, h {signed(matched.cohens_h, 2)}, {counts}" if matched.trials else counts,
    )


def _dropped(number_: int) -> str:
    return f" ({number_} dropped)" if number_ else ""
