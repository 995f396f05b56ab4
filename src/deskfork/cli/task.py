"""`deskfork task`: what there is to do."""

from pathlib import Path
from typing import Annotated

import typer

from deskfork.cli.output import print_json, print_line, print_table
from deskfork.tasks.load import open_source
from deskfork.tasks.schema import Task

app = typer.Typer(help="List and show tasks.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Source = Annotated[
    Path | None, typer.Option(help="A Spider2-V checkout or a folder of tasks; the project's own by default.")
]


@app.command("list")
def list_(source: Source = None, json: Json = False) -> None:
    """List the tasks of a source; those that cannot be run are listed with the reason."""
    tasks = open_source(source).list()
    if json:
        print_json([task.model_dump(mode="json") for task in tasks])
        return
    rows = [
        [
            t.id,
            t.template or "-",
            "yes" if t.has_solution else "no",
            _shortened(t.instruction) if t.runnable else t.error,
        ]
        for t in tasks
    ]
    print_table(["task", "template", "solution", "instruction, or why it cannot be run"], rows)


@app.command("show")
def show(
    task_id: Annotated[str, typer.Argument(help="The task's id, or how it begins.")],
    source: Source = None,
    json: Json = False,
) -> None:
    """Show one task."""
    task = open_source(source).load(task_id)
    if json:
        print_json(task.model_dump(mode="json"))
    else:
        print_line(_described(task))


def _described(task: Task) -> str:
    lines = [f"{task.id} ({task.source}, template {task.template}{', network' if task.network else ''})", ""]
    lines += [task.instruction, ""]
    lines += [
        f"set-up: {step.model_dump_json(exclude_defaults=True, exclude={'type'})} [{step.type}]" for step in task.setup
    ]
    lines += [f"check: {check.metric} on {check.result.model_dump_json()}" for check in task.evaluator.checks]
    lines.append(f"solution: {task.solution or 'none'}")
    return "\n".join(lines)


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 90 else flat[:89] + "…"
