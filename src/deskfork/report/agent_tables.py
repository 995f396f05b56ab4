"""Tables of what agents did, and what it took."""

from collections.abc import Callable, Iterable, Sequence

from deskfork.report.failures.rules import RULES
from deskfork.report.figures_text import NOTHING, p_text, percent, short_rate, signed, spread_text, total_text
from deskfork.report.model import AgentSummary, GroupRate, Report, ReportedTrial
from deskfork.report.section import Section
from deskfork.report.statistics.logistic import LogisticFit
from deskfork.report.words import number, short_id


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


def _groups(report: Report, name: str, note: str, of: Callable[[AgentSummary], Sequence[GroupRate]]) -> Section:
    agents = [agent for agent in report.agents if of(agent)]
    rates = {(agent.agent, group.name): group for agent in agents for group in of(agent)}
    names = sorted({group for _, group in rates})
    rows = [(short_id(group), *_both(rates.get((agent.agent, group)) for agent in agents)) for group in names]
    headers = (name, *(agent.agent for agent in agents))
    return Section(
        name, f"Success by {name}", f"{note} The strict verdict stands beside where it differs.", headers, tuple(rows)
    )


def _both(groups: Iterable[GroupRate | None]) -> list[str]:
    return [NOTHING if group is None else _group(group) for group in groups]


def _group(group: GroupRate) -> str:
    rate, strict = short_rate(group.success), short_rate(group.strict_success)
    return rate if strict == rate else f"{rate}, strict {strict}"


TABLES: tuple[Callable[[Report], Section], ...] = (
    _effort,
    _phases,
    _actions,
    _gui_lines,
    _self_report,
    _failure_modes,
    lambda report: _groups(report, "tag", "Of the tasks' own tags.", lambda agent: agent.by_tag),
    lambda report: _groups(
        report, "evaluator", "By metric, of trials that got to their evaluation.", lambda agent: agent.by_evaluator
    ),
    lambda report: _groups(report, "wording", "Of goals that are worded twice.", lambda agent: agent.by_wording),
    lambda report: _groups(report, "pair", "Both wordings of a goal together.", lambda agent: agent.by_pair),
)
"""Each makes one table of a report."""
