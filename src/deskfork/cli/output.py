"""Data to stdout, progress to stderr."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.text import Text

from deskfork.report.render import make_table, printable, stdout_console
from deskfork.sandbox.images.workshop import Progress as BuildProgress

Say = Callable[[str], None]


def print_json(value: object) -> None:
    """Print `value` as JSON, times and paths as text."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_line(text: str) -> None:
    """Print one line, as it is."""
    typer.echo(text)


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table for people."""
    stdout_console().print(make_table(headers, rows))


def print_rendered(renderable: RenderableType) -> None:
    """Print something that report/render.py made."""
    stdout_console().print(renderable)


def warn(text: str) -> None:
    """Say something on stderr that is not part of the data."""
    typer.echo(text, err=True)


@contextmanager
def progress_log() -> Iterator[Say]:
    """Yield a function that tells on stderr what long work has reached: a line each, with a spinner on a terminal."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield warn
        return
    with console.status(Text("starting")) as status:

        def say(text: str) -> None:
            console.print(Text(printable(text), "dim"))
            status.update(Text(printable(text)))

        yield say


@contextmanager
def progress_bar() -> Iterator[Callable[[BuildProgress], None]]:
    """Yield a function that shows a build on stderr: a bar on a terminal, else a line for each stage and tenth."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        told: set[tuple[str, int]] = set()

        def tell(progress: BuildProgress) -> None:
            tenth = int((progress.fraction or 0.0) * 10)
            if (progress.stage, tenth) not in told:
                told.add((progress.stage, tenth))
                warn(f"{progress.stage}: {tenth * 10} % {printable(progress.line)}")

        yield tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with ProgressBar(*columns, TextColumn("{task.fields[line]}"), console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0, line="")

        def show(progress: BuildProgress) -> None:
            line = escape(printable(progress.line))[: max(20, console.width - 60)]
            bar.update(task, description=progress.stage, line=line)
            if progress.fraction is not None:
                bar.update(task, completed=progress.fraction)

        yield show
