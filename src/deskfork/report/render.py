"""Tables for people."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from deskfork.report.aggregate import RunReport
from deskfork.report.pairs import PairReport
from deskfork.report.section import Section
from deskfork.report.trial import TrialReport
from deskfork.report.words import agent_sentence, notes_on, number, pair_rows, skipped_lines

_COLOURS = {"completed": "green", "limit": "yellow", "agent_error": "yellow", "cancelled": "dim"}
_UNTERMINALLED_WIDTH = 200
"""Columns where there is no terminal: in a file or a pipe nothing is to be folded at 80."""


def printable(text: str) -> str:
    """Return `text` in one line, without what a terminal would obey: parts of it were written by guests."""
    return "".join(char if char.isprintable() else " " for char in text).strip()


def make_table(headers: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> Table:
    """Return a table; markup in the cells is text."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for header in headers:
        table.add_column(Text(header), overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row))
    return table


def stdout_console() -> Console:
    """Return what prints to stdout, wide where that is no terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _UNTERMINALLED_WIDTH)
    return console


def render_run(report: RunReport) -> RenderableType:
    """Return a run's table of trials, what needs explaining, its pairs, and a line for each agent."""
    has_repeats = any(trial.repeat for trial in report.trials)
    headers = ["task", *(["n"] if has_repeats else []), "agent", "status", "score", "strict", "steps", "duration"]
    rows = [_row(trial, has_repeats=has_repeats) for trial in report.trials]
    notes = [Text(printable(note), "dim") for note in (*notes_on(report.trials), *skipped_lines(report.skipped))]
    parts: list[RenderableType] = [make_table(headers, rows), *notes, *_pairs(report.pairs), Text()]
    parts += [Text(agent_sentence(agent)) for agent in report.agents]
    if report.planned is not None and report.planned > len(report.trials):
        parts.append(
            Text(f"{report.planned - len(report.trials)} of {report.planned} trials were never begun", "yellow")
        )
    parts.append(Text(f"records: {report.run_dir}", no_wrap=True, overflow="ignore"))
    return Group(*parts)


def render_sections(title: str, notes: Sequence[str], sections: Sequence[Section]) -> RenderableType:
    """Return a report's tables under a title and what there is to say first."""
    parts: list[RenderableType] = [Text(printable(title), "bold"), *(Text(printable(note), "yellow") for note in notes)]
    for section in sections:
        parts += [Text(), Text(printable(section.title), "bold cyan"), Text(printable(section.note), "dim")]
        parts.append(make_table(section.headers, section.rows))
    return Group(*parts)


def _row(trial: TrialReport, *, has_repeats: bool) -> list[str | Text]:
    return [
        trial.task,
        *([str(trial.repeat)] if has_repeats else []),
        trial.agent,
        Text(trial.status, _COLOURS.get(trial.status, "red")),
        number(trial.score),
        Text(number(trial.strict_score), "yellow" if trial.has_difference else ""),
        "-" if trial.steps is None else str(trial.steps),
        "-" if trial.duration_s is None else f"{trial.duration_s:.1f} s",
    ]


def _pairs(pairs: Sequence[PairReport]) -> list[RenderableType]:
    if not pairs:
        return []
    headers, *rows = pair_rows(pairs)
    return [Text(), make_table(headers, rows)]
