"""A report as tables: the same in a terminal, in Markdown and on the page."""

from collections.abc import Callable, Iterable, Sequence

from deskfork.report.failures.rules import RULES
from deskfork.report.figures_text import (
    NOTHING,
    amount,
    interval_text,
    p_text,
    percent,
    rate_text,
    short_rate,
    signed,
    spread_text,
    total_text,
)
from deskfork.report.model import AgentSummary, Comparison, GroupRate, Report, ReportedTrial
from deskfork.report.section import Section
from deskfork.report.statistics.logistic import LogisticFit
from deskfork.report.words import number, short_id


def sections(report: Report) -> list[Section]:
    """Return a report's tables, all but the list of trials; those that would be empty are left out."""
    made = [
        _success(report), _absent(report), _passes(report), _comparisons(report), _effort(report), _phases(report),
        _actions(report), _gui_lines(report), _self_report(report), _failure_modes(report),
        _groups(report, "tag", "Success by tag", "Of the tasks' own tags.", lambda agent: agent.by_tag),
        _groups(report, "evaluator", "Success by evaluator", "By metric, of trials that got to their evaluation.",
                lambda agent: agent.by_evaluator),
        _groups(report, "wording", "Success by wording", "Of goals that are worded twice.",
                lambda agent: agent.by_wording),
        _groups(report, "pair", "Success by pair", "Both wordings of a goal together.", lambda agent: agent.by_pair),
    ]  # fmt: skip
    return [section for section in made if section.rows]


def headline(report: Report) -> str:
    """Return what the report is on, in a line."""
    runs = ", ".join(f"{run.run_id} ({run.label})" if len(report.runs) > 1 else run.run_id for run in report.runs)
    return f"Report on {runs}: {len(report.trials)} trials of {len(report.agents)} agents"


def trial_section(report: Report) -> Section:
    """Return the list of trials."""
    rows = [
        (trial.task, trial.wording or NOTHING, trial.agent, str(trial.repeat), trial.status, number(trial.score),
         number(trial.strict_score), trial.self_report or NOTHING, NOTHING if trial.steps is None else str(trial.steps),
         amount(trial.duration_s), modes_text(trial.failure_modes), trial.reason if trial.score is None else "")
        for trial in report.trials
    ]  # fmt: skip
    headers = ("task", "wording", "agent", "n", "status", "score", "strict", "said", "steps", "seconds",
               "failure modes (step)", "why there is no score")  # fmt: skip
    return Section("trials", "Trials", "", headers, tuple(rows))


def modes_text(modes: dict[str, int | None]) -> str:
    """Return the rules that hold for a trial, each with the first step that shows it."""
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


def _effort(report: Report) -> Section:
    rows = [
        (agent.agent, *(text for spread in (agent.steps, agent.tokens, agent.cost_usd, agent.duration_s)
                        for text in (spread_text(spread), total_text(spread))))
        for agent in report.agents
    ]  # fmt: skip
    note = "A trial: median [quartiles]; a total is unknown where that of one trial is."
    headers = ("agent", "steps", "total", "tokens", "total", "USD", "total", "seconds", "total")
    return Section("effort", "Steps, tokens, cost, time", note, headers, tuple(rows))


def _phases(report: Report) -> Section:
    parts = [(agent, {**agent.phases_s, **{f"agent: {k}": v for k, v in agent.agent_phase_s.items()}}) for agent in
             report.agents]  # fmt: skip
    names = list(dict.fromkeys(name for _, spreads in parts for name, spread in spreads.items() if spread.known))
    rows = [
        (name, *(spread_text(spreads[name]) if name in spreads else NOTHING for _, spreads in parts)) for name in names
    ]
    note = "Seconds of the trials that got there: median [quartiles]. `agent: …` are parts of the phase `agent`."
    headers = ("phase", *(agent.agent for agent, _ in parts))
    return Section("phases", "Time by phase", note, headers, tuple(rows))


def _actions(report: Report) -> Section:
    rows = [row for agent in report.agents for row in _action_rows(agent)]
    note = "Shares of all steps, and of all lines of code, by what they do, in trials that succeeded and that failed."
    return Section("actions", "Actions", note, ("agent", "trials that", "steps", "lines"), tuple(rows))


def _action_rows(agent: AgentSummary) -> list[tuple[str, ...]]:
    mix = agent.actions
    outcomes = [("succeeded", mix.steps_success, mix.lines_success), ("failed", mix.steps_failure, mix.lines_failure)]
    return [(agent.agent, which, _mix(steps), _mix(lines)) for which, steps, lines in outcomes if steps or lines]


def _gui_lines(report: Report) -> Section:
    rows = [
        (agent.agent, str(mix.fit.trials), percent(mix.gui_ratio_success), percent(mix.gui_ratio_failure),
         *_fit(mix.fit))
        for agent in report.agents
        for mix in [agent.actions]
        if mix.fit.trials
    ]  # fmt: skip
    note = (
        "The share of a trial's lines that drive the GUI: medians, and a logistic fit of success on it. The slope is"
        " the change of the log-odds from no GUI line to nothing else, with its Wald interval and test."
    )
    headers = ("agent", "trials", "median, succeeded", "median, failed", "slope [95 %]", "p", "pseudo R2")
    return Section("gui_lines", "GUI lines and success", note, headers, tuple(rows))


def _fit(fit: LogisticFit) -> tuple[str, str, str]:
    if fit.slope is None:
        return f"no fit: {fit.outcome}", NOTHING, NOTHING
    slope = f"{signed(fit.slope, 2)} [{signed(fit.slope_low, 2)}, {signed(fit.slope_high, 2)}]"
    return slope, p_text(fit.p), number(fit.pseudo_r2)


def _mix(counts: dict[str, int]) -> str:
    total = sum(counts.values())
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {100 * count / total:.0f} %" for name, count in ranked) or NOTHING


def _self_report(report: Report) -> Section:
    rows = [
        (agent.agent, *(str(count) for count in (said.done_success, said.done_failure, said.failed_success,
                                                 said.failed_failure, said.silent_success, said.silent_failure,
                                                 said.absent)))
        for agent in report.agents
        for said in [agent.self_report]
    ]  # fmt: skip
    note = "What the agent said at its end, or that it never ended by itself, against the benchmark's verdict; trials."
    headers = ("agent", "said done: success", "said done: failure", "gave up: success", "gave up: failure",
               "ran out: success", "ran out: failure", "no score")  # fmt: skip
    return Section("self_report", "Self-report", note, headers, tuple(rows))


def _failure_modes(report: Report) -> Section:
    agents = [agent for agent in report.agents if agent.failure_modes]
    modes = {(agent.agent, mode.rule): mode for agent in agents for mode in agent.failure_modes}
    shown = {rule: trial for trial in reversed(report.trials) for rule in trial.failure_modes}
    rows = [
        (rule.title, rule.meaning, rule.source,
         *(f"{mode.failures} / {mode.successes} / {mode.absent}" if mode else NOTHING for mode in found),
         _where(shown[rule.name], rule.name))
        for rule in RULES
        for found in [[modes.get((agent.agent, rule.name)) for agent in agents]]
        if any(found)
    ]  # fmt: skip
    note = "Trials for which a rule holds: failed / succeeded / without a score; and a step that shows it, from 1."
    headers = ("failure mode", "when", "after", *(agent.agent for agent in agents), "for example")
    return Section("failure_modes", "Failure modes", note, headers, tuple(rows))


def _where(trial: ReportedTrial, rule: str) -> str:
    step = trial.failure_modes[rule]
    return f"{short_id(trial.task)} {trial.agent} #{trial.repeat}" + (f" step {step}" if step else "")


def _groups(
    report: Report, name: str, title: str, note: str, of: Callable[[AgentSummary], Sequence[GroupRate]]
) -> Section:
    agents = [agent for agent in report.agents if of(agent)]
    rates = {(agent.agent, group.name): group for agent in agents for group in of(agent)}
    names = sorted({group for _, group in rates})
    rows = [
        (short_id(group), *_both(rates.get((agent.agent, group)) for agent in agents))
        for group in names
    ]  # fmt: skip
    return Section(
        name, title, f"{note} Benchmark's verdict, then strict.", (name, *(a.agent for a in agents)), tuple(rows)
    )


def _both(groups: Iterable[GroupRate | None]) -> list[str]:
    return [
        NOTHING if group is None else f"{short_rate(group.success)}, {short_rate(group.strict_success)}"
        for group in groups
    ]
