"""`deskfork bench`: deskfork measured on the machine at hand."""

from functools import partial
from typing import Annotated

import typer

from deskfork.cli.output import Say, print_json, print_table, progress_log
from deskfork.core.config import cache_dir
from deskfork.sandbox.open import bench_providers, open_vm_provider

app = typer.Typer(help="Measure deskfork on this machine.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure deskfork on this machine."""


@app.command("sandbox")
def sandbox(
    provider: Annotated[str, typer.Option(help="docker, qemu, or auto for all that work here.")] = "auto",
    forks: Annotated[int, typer.Option(min=1, help="How many forks to time.")] = 8,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure boot, forks and channels with the jupyter template; other load on the machine shows in the figures."""
    # Loads the agents' libraries, which take seconds: no other command should wait for them.
    from deskfork.bench.sandbox import bench_sandbox

    figures = {}
    with progress_log() as say:
        for name in bench_providers(provider):
            with open_vm_provider(name, cache_dir()) as opened:
                figures[name] = bench_sandbox(opened, partial(_tell, say, name), forks=forks)
    if json:
        print_json({name: found.model_dump(mode="json") for name, found in figures.items()})
    else:
        for name, found in figures.items():
            rows = [
                [key, *(f"{value:g}" for value in item.values())] if isinstance(item, dict) else [key, f"{item:g}"]
                for key, item in found.model_dump().items()
            ]
            print_table([name, "median", "min", "max", "n"], rows)


def _tell(say: Say, name: str, line: str) -> None:
    say(f"{name}: {line}")
