"""Data to stdout, progress to stderr."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from deskfork.report.render import make_table, printable, stdout_console

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
