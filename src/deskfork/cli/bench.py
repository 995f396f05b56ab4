"""`deskfork bench`: deskfork measured on the machine at hand."""

from functools import partial
from pathlib import Path
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


@app.command("tasks")
def tasks(
    source: Annotated[Path | None, typer.Option(help="A Spider2-V checkout, or a folder of tasks.")] = None,
    tasks: Annotated[str, typer.Option(help="`all`, or ids and prefixes with commas between.")] = "all",
    provider: Annotated[str, typer.Option(help="auto, docker or qemu.")] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure each task from its fork until an agent may start, and again where it was baked."""
    from deskfork.bench.tasks import bench_tasks

    with progress_log() as say, open_vm_provider(provider, cache_dir()) as opened:
        times = bench_tasks(source, tasks, opened, say)
    if json:
        print_json(times.model_dump(mode="json"))
        return
    rows = [
        [each.task[:8], *map(_seconds, (each.ready_s, each.fork_s, each.baked_s)), each.error] for each in times.tasks
    ]
    for name in ("median", "max"):
        ready, baked = (float(getattr(figure, name)) if figure else None for figure in (times.ready_s, times.baked_s))
        rows.append([name, _seconds(ready), "", _seconds(baked), ""])
    print_table(["task", "ready, s", "of it fork, s", "baked, s", ""], rows)


@app.command("agents")
def agents(
    provider: Annotated[str, typer.Option(help="auto, docker or qemu.")] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure what a step costs: deskfork's own part in each action space, the act, and each observation."""
    from deskfork.bench.agents import bench_agents

    with progress_log() as say, open_vm_provider(provider, cache_dir()) as opened:
        found = bench_agents(opened, say)
    if json:
        print_json(found.model_dump(mode="json"))
        return
    figures = {"framework": found.framework_ms, "act": found.act_ms, "observe": found.observe_ms}
    print_table(
        ["milliseconds of a step", "", "median", "min", "max", "n"],
        [
            [what, name, *(f"{value:g}" for value in one.model_dump().values())]
            for what, named in figures.items()
            for name, one in named.items()
        ]
        + [["first look", "accessibility", f"{found.first_accessibility_ms:g}", "", "", "1"]],
    )


@app.command("run")
def run(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Measure what scheduling 1,000 trials and resuming a run of 10,000 cost; no machine is started."""
    from deskfork.bench.runs import bench_runs
    from deskfork.cli.bench_runs import CommandRuns

    with progress_log() as say:
        found = bench_runs(CommandRuns(), say)
    if json:
        print_json(found.model_dump(mode="json"))
        return
    reach = [
        [f"scheduling and recording {found.trials} trials, ms each", "10", f"{found.own_ms_per_trial:g}"],
        ["with what the fake provider does, ms each", "", f"{found.whole_ms_per_trial:g}"],
        ["memory at its highest, MiB", "300", f"{found.memory_mib:g}"],
        ["memory grown from the 100th trial on, MiB", "", f"{found.memory_growth_mib:g}"],
        [f"resuming a run of {found.finished_trials} finished trials, s", "2", f"{found.resume_s.median:g}"],
        ["summing it up, s", "10", f"{found.report_s.median:g}"],
    ]
    print_table(["figure", "at most", "measured"], reach)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _tell(say: Say, name: str, line: str) -> None:
    say(f"{name}: {line}")
