"""`deskfork doctor`: what this machine has, lacks, and what to do about it."""

from typing import Annotated

import typer

from deskfork.cli.output import print_json, print_table
from deskfork.core.config import cache_dir
from deskfork.sandbox.doctor import examine


def doctor(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Look at what deskfork needs; exit 0 if this machine can run a provider, else 2."""
    diagnosis = examine(cache_dir())
    if json:
        print_json({**diagnosis.model_dump(mode="json"), "can_run": diagnosis.can_run})
    else:
        rows = [[finding.state, finding.name, finding.found, finding.advice] for finding in diagnosis.findings]
        rows.append(["ok" if diagnosis.can_run else "missing", "providers", ", ".join(diagnosis.providers), ""])
        print_table(["state", "what", "found", "what to do"], rows)
    raise typer.Exit(0 if diagnosis.can_run else 2)
