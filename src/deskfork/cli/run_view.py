"""`deskfork run view`: a run in the browser."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from deskfork.cli.output import print_json, print_line
from deskfork.viewer.server import open_viewer


def view(
    run_dir: Annotated[Path, typer.Argument(help="A run's directory.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback; any free one by default.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a run in the browser, step by step, also while it goes on; print the URL and serve it until Ctrl-C."""
    with open_viewer(run_dir, port=port) as viewer:
        if json:
            print_json({"url": viewer.url})
        else:
            print_line(viewer.url)
        # Ctrl-C is how it is meant to end.
        with suppress(KeyboardInterrupt):
            viewer.serve_forever(poll_interval=0.2)
