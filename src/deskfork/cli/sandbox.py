"""`deskfork sandbox`: running desktops."""

import os
from typing import Annotated

import typer

from deskfork.cli.output import print_json, print_line, print_table
from deskfork.core.config import cache_dir
from deskfork.sandbox.hold import start_held, stop
from deskfork.sandbox.live import find_record, live_records, sandboxes_dir
from deskfork.sandbox.prune import prune
from deskfork.sandbox.shell import shell_command
from deskfork.sandbox.view import open_view

app = typer.Typer(help="Start, list, enter, watch and end desktops.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Id = Annotated[str, typer.Argument(help="The sandbox's id, or how it begins.")]


@app.command("start")
def start(
    template: Annotated[str, typer.Option(help="desktop or jupyter.")] = "jupyter",
    provider: Annotated[str, typer.Option(help="auto, docker or qemu.")] = "auto",
    network: Annotated[bool, typer.Option("--network", help="Let the guest open connections to the outside.")] = False,
    json: Json = False,
) -> None:
    """Start a desktop that stays until `sandbox stop`; print its id."""
    sandbox_id = start_held(cache_dir(), provider, template, network=network)
    if json:
        print_json({"id": sandbox_id})
    else:
        print_line(sandbox_id)


@app.command("list")
def list_(json: Json = False) -> None:
    """List the desktops that run."""
    records = [record for record in live_records(cache_dir()) if record.kind == "sandbox"]
    if json:
        print_json([record.model_dump(mode="json") for record in records])
    else:
        rows = [
            [r.id, r.template, r.provider, f"{r.created_at:%H:%M:%S}", "sandbox start" if r.is_held else "a run"]
            for r in records
        ]
        print_table(["id", "template", "provider", "since (UTC)", "started by"], rows)


@app.command("shell")
def shell(sandbox_id: Id) -> None:
    """Open a shell in a desktop, as its user."""
    command = shell_command(cache_dir(), find_record(cache_dir(), sandbox_id))
    os.execvp(command[0], command)


@app.command("view")
def view(sandbox_id: Id, json: Json = False) -> None:
    """Print the URL of a page that shows a desktop live."""
    url = open_view(sandboxes_dir(cache_dir()) / find_record(cache_dir(), sandbox_id).id)
    if json:
        print_json({"url": url})
    else:
        print_line(url)


@app.command("stop")
def stop_(sandbox_id: Id) -> None:
    """End a desktop that `sandbox start` started."""
    stop(cache_dir(), find_record(cache_dir(), sandbox_id))


@app.command("prune")
def prune_(json: Json = False) -> None:
    """Remove what owners that died left behind: processes, containers, files."""
    removed = prune(cache_dir())
    if json:
        print_json(removed)
    else:
        print_line(f"removed: {', '.join(removed) or 'nothing was left behind'}")
