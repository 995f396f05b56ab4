"""`deskfork task`: what there is to do."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from deskfork.cli.output import print_json, print_line, print_rendered, warn
from deskfork.cli.task_check import check
from deskfork.cli.task_text import render_list, render_task
from deskfork.tasks.choose import Choice, choose, split_words
from deskfork.tasks.describe import describe_task
from deskfork.tasks.load import open_source
from deskfork.tasks.pairs import in_pairs
from deskfork.tasks.scaffold import make_task

app = typer.Typer(help="List, show, check and make tasks.", no_args_is_help=True)
app.command("check")(check)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Source = Annotated[
    Path | None, typer.Option(help="A Spider2-V checkout or a folder of tasks; the project's own by default.")
]


@app.command("list")
def list_(
    source: Source = None,
    id_: Annotated[list[str] | None, typer.Option("--id", help="How ids begin, of which one is enough.")] = None,
    tags: Annotated[
        list[str] | None, typer.Option(help="Tags with commas between, which a task must all have.")
    ] = None,
    app_: Annotated[
        list[str] | None, typer.Option("--app", "--tool", help="Tools that a task is about (jupyter, …), all of them.")
    ] = None,
    evaluator: Annotated[list[str] | None, typer.Option(help="Metrics that its evaluator uses, all of them.")] = None,
    wording: Annotated[
        Literal["abstract", "verbose"] | None, typer.Option(help="Only the abstract or the verbose one of each pair.")
    ] = None,
    runnable: Annotated[bool, typer.Option("--runnable", help="Only those that can be run here.")] = False,
    json: Json = False,
) -> None:
    """List tasks; those that cannot be run here are listed with what they lack. What is asked for must all hold."""
    opened = open_source(source)
    known = opened.list()
    choice = Choice(
        ids=split_words(id_ or ()),
        tags=split_words(tags or ()),
        apps=split_words(app_ or ()),
        evaluators=split_words(evaluator or ()),
        wording=wording,
        is_runnable=runnable,
    )
    tasks = choose(in_pairs(known), choice)
    if json:
        print_json([task.model_dump(mode="json") for task in tasks])
    elif tasks:
        print_rendered(render_list(tasks, [task.id for task in known]))
    for complaint in opened.complaints():
        warn(f"deskfork: {complaint}")
    can_run = sum(task.runnable for task in tasks)
    warn(f"{len(tasks)} of {len(known)} tasks, {can_run} can be run here" if tasks else "no task is like that")


@app.command("new")
def new(
    task_id: Annotated[str, typer.Argument(help="The new task's id, which is the name of its folder.")],
    directory: Annotated[Path, typer.Option(help="Folder of tasks, in which its folder is made.")],
    template: Annotated[
        Literal["desktop", "jupyter"], typer.Option(help="What its trials are forked from.")
    ] = "desktop",
) -> None:
    """Make a new task that is whole, to be changed; its README.md explains the format."""
    folder = make_task(directory, task_id, template)
    print_line(str(folder))
    warn(f"now: deskfork task check --source {directory} --tasks {task_id}")


@app.command("show")
def show(
    task_id: Annotated[str, typer.Argument(help="The task's id, or how it begins.")],
    source: Source = None,
    json: Json = False,
) -> None:
    """Show one task: what it asks for, how it is set up and judged, and its solution."""
    described = describe_task(open_source(source), task_id)
    if json:
        print_json(described.flat())
    else:
        print_rendered(render_task(described))
