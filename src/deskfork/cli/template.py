"""`deskfork template`: frozen desktops."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from deskfork.cli.errors import INFRASTRUCTURE_FAILED
from deskfork.cli.output import Say, print_json, print_line, print_table, progress_log
from deskfork.core.config import cache_dir
from deskfork.sandbox.open import open_vm_provider
from deskfork.sandbox.templates.baked import BakeOptions
from deskfork.sandbox.templates.listing import TemplateSummary, list_templates
from deskfork.sandbox.templates.prune import Removal, plan_removal, prunable, remove_templates
from deskfork.sandbox.templates.template import RECIPES, is_built
from deskfork.trial.bake import BakeResult, bake_tasks

app = typer.Typer(help="Boot desktops once and freeze them.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Provider = Annotated[str, typer.Option(help="auto, docker or qemu: whose QEMU freezes it.")]
Yes = Annotated[bool, typer.Option("--yes", help="Remove them; without it they are only named.")]


@app.command("build")
def build(
    names: Annotated[list[str] | None, typer.Argument(help=f"Which ({', '.join(RECIPES)}); all by default.")] = None,
    provider: Provider = "auto",
    force: Annotated[bool, typer.Option("--force", help="Build again even if it is there.")] = False,
) -> None:
    """Build templates; those that are there already are not built again."""
    with progress_log() as say, open_vm_provider(provider, cache_dir()) as opened:
        for name in names or list(RECIPES):
            if force or not is_built(cache_dir(), name, opened.image(), opened.launcher):
                opened.build(name, partial(_tell, say, name))
            else:
                say(f"template {name}: is built")


@app.command("bake")
def bake(
    source: Annotated[
        Path | None, typer.Option(help="A Spider2-V checkout or a folder of tasks; the project's own by default.")
    ] = None,
    tasks: Annotated[str, typer.Option(help="Ids or prefixes with commas between, or all.")] = "all",
    provider: Provider = "auto",
    network: Annotated[
        bool, typer.Option("--network", help="Set all up with a network, for runs that have --network.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Bake again even if it is there.")] = False,
    json: Json = False,
) -> None:
    """Run the whole set-up of tasks once and freeze its outcome, from which their trials then start.

    Tasks with the same set-up share what was baked. One whose set-up fails does not keep the others from being baked.
    """
    options = BakeOptions(network=network, force=force)
    results = []
    with progress_log() as say, open_vm_provider(provider, cache_dir()) as opened:
        for result in bake_tasks(source, tasks, opened, options=options, on_progress=say):
            say(f"{result.task}: {result.outcome}{f': {result.error}' if result.error else ''}")
            results.append(result)
    if json:
        print_json([result.model_dump(mode="json") for result in results])
    else:
        headers = ["task", "template", "outcome", "memory", "MiB on disk", "seconds"]
        print_table(headers, [_bake_row(result) for result in results])
    if any(result.outcome == "failed" for result in results):
        raise typer.Exit(INFRASTRUCTURE_FAILED)


@app.command("list")
def list_(
    json: Json = False,
    by_size: Annotated[bool, typer.Option("--by-size", help="The largest first.")] = False,
) -> None:
    """List the templates in the cache, the baked ones too."""
    templates = list_templates(cache_dir())
    if by_size:
        templates.sort(key=lambda template: -template.disk_mib)
    if json:
        print_json([template.model_dump(mode="json") for template in templates])
    else:
        headers = ["template", "task", "memory", "MiB on disk", "made", "last used", "QEMU", "runs under", "state"]
        print_table(headers, [_row(template) for template in templates])


@app.command("remove")
def remove(
    names: Annotated[list[str], typer.Argument(help="Templates, their folders' names, or tasks that were baked.")],
    yes: Yes = False,
) -> None:
    """Remove templates, and what was baked over them; refuses those that live sandboxes use."""
    _remove(plan_removal(list_templates(cache_dir()), names), yes=yes)


@app.command("prune")
def prune(
    baked: Annotated[
        bool, typer.Option("--baked", help="Also baked templates that can be used, those used least recently first.")
    ] = False,
    keep_mib: Annotated[float, typer.Option(min=0, help="With --baked: what may be left of them, MiB.")] = 0.0,
    yes: Yes = False,
) -> None:
    """Remove templates that cannot be used any more, and baked ones that take too much room; none that is in use."""
    _remove(prunable(cache_dir(), keep_baked_mib=keep_mib if baked else None), yes=yes)


def _remove(removals: list[Removal], *, yes: bool) -> None:
    chosen = remove_templates(removals) if yes else removals
    for removal in chosen:
        template = removal.template
        what = f"{template.directory.name}{f' ({template.task})' if template.task else ''}"
        verb = "removed" if yes else "would remove"
        print_line(f"{verb} {what}, {template.disk_mib:.0f} MiB: {removal.reason}")
    total = sum(removal.template.disk_mib for removal in chosen)
    if yes:
        print_line(f"{total:.0f} MiB freed")
    elif chosen:
        print_line(f"{total:.0f} MiB would be freed: add --yes to do it")
    else:
        print_line("nothing to remove")


def _bake_row(result: BakeResult) -> list[str]:
    size = f"{result.disk_mib:.0f}" if result.disk_mib else ""
    seconds = f"{sum(result.phases_s.values()):.0f}" if result.phases_s else ""
    return [result.task, result.template, result.error or result.outcome, result.memory, size, seconds]


def _row(template: TemplateSummary) -> list[str]:
    return [
        template.directory.name,
        template.task,
        template.memory,
        f"{template.disk_mib:.0f}",
        f"{template.created_at:%Y-%m-%d %H:%M}",
        f"{template.last_used_at:%Y-%m-%d %H:%M}",
        template.qemu_version.partition(" ")[0],
        template.acceleration,
        template.problem or ("in use" if template.is_used else "ready"),
    ]


def _tell(say: Say, name: str, line: str) -> None:
    say(f"template {name}: {line}")
