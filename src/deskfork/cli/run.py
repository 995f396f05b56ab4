"""`deskfork run`: agents at tasks, and what came of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deskfork.cli import run_options as option
from deskfork.cli.errors import INFRASTRUCTURE_FAILED, signal_exit_code
from deskfork.cli.output import print_json, print_line, print_rendered, warn
from deskfork.cli.run_options import Json
from deskfork.cli.run_view import view
from deskfork.cli.verdicts import render_regraded
from deskfork.records.reader import read_run
from deskfork.records.trial import TrialStatus
from deskfork.report.aggregate import RunReport, report_results, report_run
from deskfork.report.markdown import markdown_run
from deskfork.report.render import render_run

if TYPE_CHECKING:
    from deskfork.cli.run_progress import RunProgress
    from deskfork.trial.regrade import Gather
    from deskfork.trial.run import RunSummary

app = typer.Typer(help="Run agents on tasks, and show what came of it.", no_args_is_help=True)
RunDir = Annotated[Path, typer.Argument(help="A run's directory.")]
app.command("view")(view)


@app.command("start")
def start(
    context: typer.Context,
    config: option.File = None,
    source: option.Source = None,
    tasks: option.Tasks = None,
    wording: option.Wording = None,
    agent: option.Agents = None,
    model: option.Model = None,
    cache: option.Cache = None,
    provider: option.Provider = None,
    repeats: option.Repeats = None,
    parallel: option.Parallel = None,
    engine: option.EngineName = None,
    ray_address: option.RayAddress = None,
    max_steps: option.MaxSteps = None,
    max_seconds: option.MaxSeconds = None,
    max_tokens: option.MaxTokens = None,
    max_cost: option.MaxCost = None,
    budget_seconds: option.BudgetSeconds = None,
    budget_tokens: option.BudgetTokens = None,
    budget_cost: option.BudgetCost = None,
    network: option.Network = None,
    keep_state: option.KeepState = None,
    out: option.Out = None,
    json: Json = False,
) -> None:
    """Run agents on tasks, each trial in a fresh fork, and record everything."""
    from deskfork.trial.run import start_run

    resolved = option.resolve(context)
    _run(lambda told: start_run(resolved, notify=told.notify, on_begin=told.begin), json=json)


@app.command("resume")
def resume(run_dir: RunDir, json: Json = False) -> None:
    """Go on with a run that was cut off or cancelled: what ended is not repeated, what was cut off is kept."""
    from deskfork.trial.resume import resume_run

    _run(lambda told: resume_run(run_dir, notify=told.notify, on_begin=told.begin), json=json)


@app.command("plan")
def plan(
    context: typer.Context,
    config: option.File = None,
    source: option.Source = None,
    tasks: option.Tasks = None,
    wording: option.Wording = None,
    agent: option.Agents = None,
    model: option.Model = None,
    cache: option.Cache = None,
    provider: option.Provider = None,
    repeats: option.Repeats = None,
    parallel: option.Parallel = None,
    engine: option.EngineName = None,
    ray_address: option.RayAddress = None,
    max_steps: option.MaxSteps = None,
    max_seconds: option.MaxSeconds = None,
    max_tokens: option.MaxTokens = None,
    max_cost: option.MaxCost = None,
    budget_seconds: option.BudgetSeconds = None,
    budget_tokens: option.BudgetTokens = None,
    budget_cost: option.BudgetCost = None,
    network: option.Network = None,
    keep_state: option.KeepState = None,
    out: option.Out = None,
    json: Json = False,
) -> None:
    """Tell which trials a run would have, and about what time, memory and money it would take; starts no machine."""
    from deskfork.cli.run_plan import render_plan
    from deskfork.trial.estimate import plan_run

    found = plan_run(option.resolve(context))
    if json:
        print_json(found.model_dump(mode="json"))
    else:
        print_rendered(render_plan(found))


@app.command("show")
def show(
    run_dir: RunDir,
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
    run_dir: RunDir,
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


def _run(work: "Callable[[RunProgress], RunSummary]", *, json: bool) -> None:
    from deskfork.cli.run_progress import RunProgress

    with RunProgress() as progress:
        summary = work(progress)
    _print(
        report_results(summary.run_dir, summary.results, planned=summary.planned, skipped=summary.skipped), json=json
    )
    _end(summary)


def _print(report: RunReport, *, json: bool) -> None:
    if json:
        print_json(report.model_dump(mode="json"))
    else:
        print_rendered(render_run(report))


def _end(summary: "RunSummary") -> None:
    if summary.signal_number is not None:
        warn(f"deskfork: cancelled; what ended before is kept, `deskfork run resume {summary.run_dir}` goes on")
        raise typer.Exit(signal_exit_code(summary.signal_number))
    if summary.budget_reached:
        warn(f"deskfork: {summary.not_begun} trials not begun: {summary.budget_reached}")
    if any(r.status is TrialStatus.INFRA_ERROR or r.score is None for r in summary.results):
        raise typer.Exit(INFRASTRUCTURE_FAILED)
