"""Tables of verdicts: what a regrading changed, and which tasks can be trusted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from deskfork.records.trial import Verdict
from deskfork.report.render import make_table, printable

if TYPE_CHECKING:
    from deskfork.trial.check import TaskCheck
    from deskfork.trial.regrade import Regraded

_REASON_CHARS = 300


def render_regraded(entries: "Sequence[Regraded]") -> RenderableType:
    """Return a table of what changed, a line for what could not be judged, and a summary."""
    changed = [entry for entry in entries if entry.has_changed]
    rows = [
        [entry.task, entry.agent, f"{entry.repeat}.{entry.attempt}", _scores(entry.before), _scores(entry.after)]
        for entry in changed
    ]
    failed = [entry for entry in entries if entry.after is None]
    notes = [Text(f"{entry.task}: {printable(entry.reason)[:_REASON_CHARS]}", "red") for entry in failed]
    others = sorted({entry.task for entry in entries if entry.is_task_changed})
    notes += [Text(f"{task}: the task is another one than when the run was made", "yellow") for task in others]
    left = f", {len(failed)} could not be judged again" if failed else ""
    summary = Text(f"{len(changed)} of {len(entries)} verdicts changed{left}")
    table = [make_table(["task", "agent", "n.attempt", "before (strict)", "now (strict)"], rows)] if rows else []
    return Group(*table, *notes, summary)


def render_checks(checks: "Sequence[TaskCheck]") -> RenderableType:
    """Return the table of tasks with what holds for each, and why something does not."""
    rows: list[list[str | Text]] = []
    for check in checks:
        mutations = [state for state in check.states if state.name not in ("null", "oracle")]
        refused = sum(state.strict_score == 0.0 for state in mutations)
        properties = [_holds(value) for value in (check.solvable, check.discriminating, check.stable)]
        rows.append([check.task, *properties, f"{refused} of {len(mutations)}"])
    notes = [
        Text(f"{check.task}: {printable(problem)[:_REASON_CHARS]}", "yellow")
        for check in checks
        for problem in check.problems
    ]
    sound = sum(check.is_sound for check in checks)
    headers = ["task", "solvable", "discriminating", "stable", "mutations refused"]
    return Group(make_table(headers, rows), *notes, Text(f"{sound} of {len(checks)} tasks can be trusted"))


def _holds(value: bool | None) -> Text:
    return Text("?", "yellow") if value is None else Text("yes", "green") if value else Text("no", "red")


def _scores(verdict: Verdict | None) -> str:
    if verdict is None:
        return "-"
    return f"{_score(verdict.score)} ({_score(verdict.strict_score)})"


def _score(value: float | None) -> str:
    return "absent" if value is None else f"{value:.3f}"
