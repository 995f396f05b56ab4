"""Reports as Markdown, for pages and pull requests."""

from collections.abc import Sequence

from deskfork.report.aggregate import RunReport
from deskfork.report.section import Section
from deskfork.report.words import agent_sentence, notes_on, number, pair_rows, skipped_lines

_MARKUP = str.maketrans({char: f"\\{char}" for char in "\\`*_{}[]<>#|~"})


def markdown_run(report: RunReport) -> str:
    """Return a run's agents, pairs and trials, and what needs explaining."""
    parts = [f"# Run {_text(report.run_dir.name)}", _bullets([agent_sentence(agent) for agent in report.agents])]
    if report.planned is not None and report.planned > len(report.trials):
        parts.append(f"{report.planned - len(report.trials)} of {report.planned} trials were never begun.")
    if report.pairs:
        headers, *rows = pair_rows(report.pairs)
        parts += ["## Pairs", _table(headers, rows)]
    trials = [
        [
            trial.task,
            trial.wording or "-",
            trial.agent,
            str(trial.repeat),
            trial.status,
            number(trial.score),
            number(trial.strict_score),
            "-" if trial.steps is None else str(trial.steps),
            "-" if trial.duration_s is None else f"{trial.duration_s:.1f} s",
        ]
        for trial in report.trials
    ]
    headers = ["task", "wording", "agent", "n", "status", "score", "strict", "steps", "duration"]
    parts += ["## Trials", _table(headers, trials)]
    if notes := [*notes_on(report.trials), *skipped_lines(report.skipped)]:
        parts += ["## Notes", _bullets(notes)]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_sections(title: str, notes: Sequence[str], sections: Sequence[Section]) -> str:
    """Return a report's tables under a title and what there is to say first."""
    parts = [f"# {_text(title)}", _bullets(notes)]
    for section in sections:
        parts += [f"## {_text(section.title)}", _text(section.note), _table(section.headers, section.rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join([_line(headers), "|" + " --- |" * len(headers), *map(_line, rows)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_text, cells))} |"


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {_text(line)}" for line in lines)


def _text(text: str) -> str:
    """Return `text` in one line and without markup: parts of it were written by guests."""
    flat = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(flat.split()).translate(_MARKUP)
