"""Tasks as people read them: a table of many, all of one."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from deskfork.core.config import StrictModel
from deskfork.report.render import make_table, printable
from deskfork.tasks.checks import ActiveTab, GuestFile, HostFile, IncludeExclude, Nothing, ScriptOutput, UrlPatterns
from deskfork.tasks.describe import Counterpart, TaskDescription
from deskfork.tasks.schema import Task
from deskfork.tasks.steps import SetupStep
from deskfork.tasks.summary import Need, TaskSummary

SHORT_ID_CHARS = 8
_UUID_CHARS = 36
_GETTERS = (GuestFile, ScriptOutput, ActiveTab, HostFile, IncludeExclude, UrlPatterns, Nothing)


def render_list(tasks: Sequence[TaskSummary], known: Sequence[str]) -> RenderableType:
    """Return the table of `tasks`, one line each, however narrow the terminal is.

    Args:
        tasks: What to show, in this order.
        known: The ids of all tasks of the source, from which a shortened id must tell each apart.
    """
    chars = short_id_chars(known)
    rows = [
        [
            task.id[:chars] if len(task.id) == _UUID_CHARS else task.id,
            Text("yes", "green") if task.runnable else Text("no", "red"),
            task.wording or "-",
            task.template or "-",
            "yes" if task.has_solution else "no",
            _one_line(_flat(task.instruction) if task.runnable else _why_not(task), "" if task.runnable else "dim"),
        ]
        for task in tasks
    ]
    headers = ["task", "runs", "wording", "template", "solution", "instruction, or why it cannot be run here"]
    table = make_table(headers, rows)
    for column in table.columns[:-1]:
        column.no_wrap = True
    return table


def short_id_chars(ids: Sequence[str]) -> int:
    """Return how many characters tell all of `ids` apart, at least 8."""
    for chars in range(SHORT_ID_CHARS, _UUID_CHARS):
        if len({task[:chars] for task in ids}) == len(set(ids)):
            return chars
    return _UUID_CHARS


def render_task(described: TaskDescription) -> RenderableType:
    """Return all of one task, in sections."""
    summary, task = described.summary, described.task
    facts = [
        ("runs here", "yes" if summary.runnable else f"no: {summary.error}"),
        ("source", summary.source + (f", {task.root}" if task else "")),
        ("template", f"{summary.template or '-'}{', with a network' if summary.network else ''}"),
        ("tools", ", ".join(summary.related_apps) or "-"),
        ("tags", ", ".join(summary.tags) or "-"),
        ("wording", summary.wording or "-"),
        ("pair", _pair(described.counterpart)),
    ]
    parts: list[RenderableType] = [
        Text(printable(summary.id), "bold"),
        _grid([(Text(name, "dim"), text) for name, text in facts]),
        *_section("instruction", summary.instruction or "unknown"),
    ]
    if task is not None:
        parts += _steps("set-up", task.setup)
        parts += _evaluator(task)
        sizes = [f"{file.size_bytes:>10,}  {file.path}" for file in described.files]
        parts += _section("files on the host (bytes)", "\n".join(sizes) or "none")
        parts += _section(f"solution {task.solution or ''}".strip(), described.solution or described.problem or "none")
    return Group(*parts)


def _pair(counterpart: Counterpart | None) -> str:
    if counterpart is None:
        return "-"
    if not counterpart.is_listed:
        return f"{counterpart.id}, which is not here"
    difference = f": {counterpart.difference}" if counterpart.difference else ""
    return f"{counterpart.id} ({counterpart.wording or 'other wording'}){difference}"


def _evaluator(task: Task) -> list[RenderableType]:
    rows: list[tuple[str, str, Text]] = []
    for check in task.evaluator.checks:
        rows.append((check.metric, "result", _fields(check.result)))
        rows.append(("", "expected", _fields(check.expected)))
        rows.append(("", "options", _fields(check.options)))
    count = len(task.evaluator.checks)
    name = f"evaluator ({count} checks, {task.evaluator.conjunction})" if count > 1 else "evaluator"
    post_setup = task.evaluator.post_setup
    return [
        Text(),
        Text(name, "bold"),
        _grid(rows),
        *(_steps("set-up before it is read", post_setup) if post_setup else ()),
    ]


def _steps(name: str, steps: Sequence[SetupStep]) -> list[RenderableType]:
    rows = [(str(place), step.type, _fields(step)) for place, step in enumerate(steps, start=1)]
    return [Text(), Text(name, "bold"), _grid(rows) if rows else Text("  none")]


def _fields(model: StrictModel) -> Text:
    fields = model.model_dump(mode="json", exclude_defaults=True)
    kind = [model.type] if isinstance(model, _GETTERS) else []
    lines = [f"{key}: {value}" for key, value in fields.items() if key != "type"]
    return Text("\n".join(map(printable, [*kind, *lines])) or "-")


def _grid(rows: Sequence[Sequence[str | Text]]) -> RenderableType:
    table = make_table(["" for _ in rows[0]], rows)
    table.show_header = False
    return Padding(table, (0, 0, 0, 2))


def _section(name: str, text: str) -> list[RenderableType]:
    # Lines stay lines; within one, nothing that a terminal would obey.
    body = "\n".join(f"  {_printable_line(line)}" for line in text.splitlines())
    return [Text(), Text(name, "bold"), Text(body)]


def _one_line(text: str, style: str) -> Text:
    return Text(printable(text), style, no_wrap=True, overflow="ellipsis")


def _printable_line(line: str) -> str:
    """Return a line with its indentation, and without what a terminal would obey."""
    return "".join(char if char.isprintable() else " " for char in line)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _why_not(task: TaskSummary) -> str:
    if not task.needs:
        return _flat(task.error).removeprefix(f"task {task.id}: ").removeprefix(f"task {task.id} ")
    return "; ".join(_short(need) for need in task.needs)


def _short(need: Need) -> str:
    match need.kind:
        case "folder":
            return "folder missing"
        case "account":
            return f"account: {need.name}"
        case "step" | "getter" | "metric" | "download":
            return f"{need.kind} {need.name}"
        case "program":
            return need.name
