"""A report as one HTML page that needs nothing beside it."""

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from deskfork.report import plots
from deskfork.report.failures.rules import RULES
from deskfork.report.figures_text import NOTHING, amount, percent
from deskfork.report.model import AgentSummary, Confusion, Report, ReportedTrial
from deskfork.report.render import printable
from deskfork.report.tables import sections
from deskfork.report.words import number, short_id

EXAMPLES = 3
"""Trials that are named for each agent and rule."""
_TEXT_CHARS = 300
_FIGURES = {
    "success": (plots.success_plot, "Success rates. Bars are intervals; bounds are grey."),
    "comparisons": (plots.difference_plot, "Differences of the agents' mean scores over tasks."),
    "phases": (plots.phase_plot, "Mean time of a trial by what it was spent on."),
    "actions": (plots.action_plot, "What the lines of code of successful and failed trials do."),
    "gui_lines": (plots.ratio_plot, "One point a trial, moved a little up or down; curves are the logistic fits."),
}


def render_page(report: Report, page: Path) -> str:
    """Return the page: what guests and models wrote in it is text, never markup, script or a link's target.

    Args:
        report: What it tells.
        page: Where it will be written; its links to trials' folders are relative to that.
    """
    pages = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    # One line, and nothing that a terminal or a browser would obey: no control characters, no turned text.
    pages.filters |= {"plain": lambda text: printable(str(text))[:_TEXT_CHARS], "number": number, "amount": amount}
    pages.filters |= {"short": short_id, "percent": percent}
    folders = {run.label: _link(run.folder, page) for run in report.runs}
    template = pages.from_string(
        resources.files("deskfork.report").joinpath("page.html.j2").read_text(encoding="utf-8")
    )
    return template.render(
        report=report,
        sections=sections(report),
        figures={name: (Markup(draw(report)), told) for name, (draw, told) in _FIGURES.items()},
        matrices=[
            (each.agent, _matrix(each.self_report), each.self_report) for each in report.agents if not each.is_bound
        ],
        modes=_modes(report),
        folders=folders,
        link=lambda trial: f"{folders[trial.run]}/{quote(trial.folder)}/",
        nothing=NOTHING,
    )


def _link(folder: Path, page: Path) -> str:
    """Return a folder's place from the page, beginning with a dot: never a scheme."""
    return quote("./" + os.path.relpath(folder, page.absolute().parent))


def _matrix(said: Confusion) -> list[tuple[str, int, int, float, float]]:
    """Return the confusion matrix: what was said, counts of success and failure, and each one's share of all."""
    rows = [
        ("said it is done", said.done_success, said.done_failure),
        ("gave up", said.failed_success, said.failed_failure),
        ("ran out", said.silent_success, said.silent_failure),
    ]
    total = sum(good + bad for _, good, bad in rows) or 1
    return [(name, good, bad, good / total, bad / total) for name, good, bad in rows]


def _modes(report: Report) -> list[dict[str, object]]:
    """Return each rule that holds somewhere, with its agents' counts and the first trials that show it."""
    examples: dict[tuple[str, str], list[ReportedTrial]] = {}
    for trial in report.trials:
        for rule in trial.failure_modes:
            found = examples.setdefault((trial.agent, rule), [])
            if len(found) < EXAMPLES:
                found.append(trial)
    return [
        {"rule": rule, "agents": rows}
        for rule in RULES
        if (rows := [row for agent in report.agents if (row := _mode(agent, rule.name, examples))])
    ]


def _mode(
    agent: AgentSummary, rule: str, examples: Mapping[tuple[str, str], list[ReportedTrial]]
) -> dict[str, object] | None:
    mode = next((mode for mode in agent.failure_modes if mode.rule == rule), None)
    if mode is None:
        return None
    failed = agent.success.trials - agent.success.successes
    return {
        "agent": agent.agent,
        "mode": mode,
        "of_failed": mode.failures / failed if failed else None,
        "of_successes": mode.successes / agent.success.successes if agent.success.successes else None,
        "examples": examples[agent.agent, rule],
    }
