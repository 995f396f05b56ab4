"""`deskfork task check`: whether tasks can be trusted."""

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from deskfork.cli import run_options as option
from deskfork.cli.errors import INFRASTRUCTURE_FAILED, signal_exit_code
from deskfork.cli.output import print_json, print_rendered, warn
from deskfork.cli.verdicts import render_checks

UNSOUND = 1


def check(
    source: Annotated[
        Path | None, typer.Option(help="A Spider2-V checkout or a folder of tasks; the project's own by default.")
    ] = None,
    tasks: Annotated[str, typer.Option(help="Ids or prefixes with commas between, or all.")] = "all",
    wording: option.Wording = None,
    provider: Annotated[str, typer.Option(help="auto, docker, qemu or fake.")] = "auto",
    parallel: Annotated[int, typer.Option(help="Trials at the same time.")] = 1,
    record: Annotated[
        Path | None, typer.Option(help="Keep the end states (disks too) and their verdicts in this folder.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check tasks: the solution must pass, doing nothing and nearly right end states must fail, always alike."""
    from deskfork.cli.run_progress import RunProgress
    from deskfork.trial.check import check_tasks
    from deskfork.trial.config import resolve_config

    with ExitStack() as stack:
        out = record or Path(stack.enter_context(TemporaryDirectory(prefix="deskfork-check-")))
        given = {"agents": ["oracle"], "source": source, "tasks": tasks, "provider": provider, "parallel": parallel}
        config = resolve_config(None, {**given, "wording": wording, "out": out, "keep_state": record is not None})
        progress = stack.enter_context(RunProgress())
        checked = check_tasks(config, notify=progress.notify, on_begin=progress.begin)
    checks = checked.tasks
    if json:
        print_json([{**done.model_dump(mode="json"), "is_sound": done.is_sound} for done in checks])
    else:
        print_rendered(render_checks(checks))
    if record is not None:
        warn(f"end states: {record}")
    if checked.signal_number is not None:
        warn("deskfork: cancelled; tasks that are not known to be sound may be")
        raise typer.Exit(signal_exit_code(checked.signal_number))
    if any(None in (done.solvable, done.discriminating, done.stable) for done in checks):
        raise typer.Exit(INFRASTRUCTURE_FAILED)
    if not all(done.is_sound for done in checks):
        raise typer.Exit(UNSOUND)
