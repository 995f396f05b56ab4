"""`deskfork run`: agents at tasks, and what came of it."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deskfork.cli.errors import INFRASTRUCTURE_FAILED, signal_exit_code
from deskfork.cli.output import print_json, print_line, print_rendered, warn
from deskfork.cli.verdicts import render_regraded
from deskfork.records.reader import read_run
from deskfork.records.trial import TrialStatus
from deskfork.report.aggregate import RunReport, report_results, report_run
from deskfork.report.markdown import markdown_run
from deskfork.report.render import render_run

if TYPE_CHECKING:
    from deskfork.trial.config import RunConfig
    from deskfork.trial.regrade import Gather
    from deskfork.trial.run import RunSummary

app = typer.Typer(help="Run agents on tasks, and show what came of it.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("start")
def start(
    source: Annotated[
        Path | None, typer.Option(help="A Spider2-V checkout or a folder of tasks; the project's own by default.")
    ] = None,
    tasks: Annotated[
        str | None, typer.Option(help="Ids or prefixes with commas between, or all (the default).")
    ] = None,
    wording: Annotated[
        str | None, typer.Option(help="abstract or verbose: of each pair only the task that is worded so.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="An action space (`agent list`), oracle, null, replay:FILE, or a YAML file.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="litellm:…, openai:…@URL, transformers:… or scripted:FILE.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Keep the model's answers in this folder, and ask nothing twice.")
    ] = None,
    provider: Annotated[str | None, typer.Option(help="auto (the default), docker, qemu or fake.")] = None,
    repeats: Annotated[int | None, typer.Option(help="Trials of each task; 1 by default.")] = None,
    parallel: Annotated[int | None, typer.Option(help="Trials at the same time; 1 by default.")] = None,
    max_steps: Annotated[int | None, typer.Option(help="Turns of the agent; 15 by default.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Time of the agent; 1800 by default.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens in and out together; no limit by default.")] = None,
    network: Annotated[
        bool | None, typer.Option("--network/--no-network", help="Whether guests may open connections to the outside.")
    ] = None,
    keep_state: Annotated[
        bool | None, typer.Option("--keep-state", help="Keep each machine's disk as the agent left it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Parent folder of run directories; ./runs by default.")] = None,
    config: Annotated[Path | None, typer.Option(help="A YAML file (see configs/runs); options go before it.")] = None,
    json: Json = False,
) -> None:
    """Run an agent on tasks, each in a fresh fork, and record everything."""
    # Imported here because the agent's libraries take seconds, which no other command should wait for.
    from deskfork.trial.config import resolve_config

    limits = {"limits.steps": max_steps, "limits.seconds": max_seconds, "limits.tokens": max_tokens}
    options = {"source": source, "tasks": tasks, "agent": agent, "model": model, "provider": provider, "out": out}
    counts = {"repeats": repeats, "parallel": parallel, "network": network, "keep_state": keep_state}
    summary = _run(resolve_config(config, {**options, **counts, **limits, "wording": wording, "cache": cache}))
    report = report_results(summary.run_dir, summary.results, planned=summary.planned, skipped=summary.skipped)
    _print(report, json=json)
    _end(summary)


@app.command("show")
def show(
    run_dir: Annotated[Path, typer.Argument(help="A run's directory.")],
    json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Show the results of a run, also of one that was cut off."""
    report = report_run(read_run(run_dir))
    if markdown:
        print_line(markdown_run(report))
    else:
        _print(report, json=json)


@app.command("regrade")
def regrade(
    run_dir: Annotated[Path, typer.Argument(help="A run's directory.")],
    boot: Annotated[
        bool, typer.Option("--boot", help="Read the kept disks again (of a run with --keep-state), in fresh machines.")
    ] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write the new verdicts into the results; the earlier ones are kept too.")
    ] = False,
    json: Json = False,
) -> None:
    """Judge a run's trials again by what their evaluations read, and tell what changed."""
    from deskfork.trial.regrade import regrade_run

    with _gathering(run_dir) if boot else nullcontext() as gather:
        entries = regrade_run(run_dir, gather=gather, is_applied=apply)
    if json:
        print_json([{**entry.model_dump(mode="json"), "has_changed": entry.has_changed} for entry in entries])
    else:
        print_rendered(render_regraded(entries))
    if any(entry.after is None for entry in entries):
        raise typer.Exit(INFRASTRUCTURE_FAILED)


@contextmanager
def _gathering(run_dir: Path) -> "Iterator[Gather]":
    from deskfork.core.config import cache_dir
    from deskfork.sandbox.open import open_provider
    from deskfork.trial.evaluate import gather_again

    lock = read_run(run_dir).lock
    provider = open_provider(lock.provider if lock else "auto", cache_dir())
    try:
        yield lambda task, paths, earlier: gather_again(task, paths, earlier, provider)
    finally:
        provider.close()


def _run(config: "RunConfig") -> "RunSummary":
    from deskfork.cli.run_progress import RunProgress
    from deskfork.trial.run import start_run

    with RunProgress() as progress:
        return start_run(config, notify=progress.notify, on_begin=progress.begin)


def _print(report: RunReport, *, json: bool) -> None:
    if json:
        print_json(report.model_dump(mode="json"))
    else:
        print_rendered(render_run(report))


def _end(summary: "RunSummary") -> None:
    if summary.signal_number is not None:
        warn("deskfork: cancelled; what ended before is kept")
        raise typer.Exit(signal_exit_code(summary.signal_number))
    if any(r.status is TrialStatus.INFRA_ERROR or r.score is None for r in summary.results):
        raise typer.Exit(INFRASTRUCTURE_FAILED)
