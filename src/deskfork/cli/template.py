"""`deskfork template`: frozen desktops."""

from functools import partial
from typing import Annotated

import typer

from deskfork.cli.output import Say, print_json, print_table, progress_log
from deskfork.core.config import cache_dir
from deskfork.sandbox.open import open_vm_provider
from deskfork.sandbox.template import RECIPES, is_built, list_templates

app = typer.Typer(help="Boot desktops once and freeze them.", no_args_is_help=True)


@app.command("build")
def build(
    names: Annotated[list[str] | None, typer.Argument(help=f"Which ({', '.join(RECIPES)}); all by default.")] = None,
    provider: Annotated[str, typer.Option(help="auto, docker or qemu: whose QEMU freezes it.")] = "auto",
    force: Annotated[bool, typer.Option("--force", help="Build again even if it is there.")] = False,
) -> None:
    """Build templates; those that are there already are not built again."""
    with progress_log() as say, open_vm_provider(provider, cache_dir()) as opened:
        for name in names or list(RECIPES):
            if force or not is_built(cache_dir(), name, opened.image(), opened.launcher):
                opened.build(name, partial(_tell, say, name))
            else:
                say(f"template {name}: is built")


def _tell(say: Say, name: str, line: str) -> None:
    say(f"template {name}: {line}")


@app.command("list")
def list_(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the templates in the cache."""
    templates = list_templates(cache_dir())
    if json:
        print_json([template.model_dump(mode="json") for template in templates])
    else:
        rows = [
            [t.name, t.digest[:12], t.qemu_version, t.acceleration, f"{t.disk_mib:.0f}", t.problem or "ready"]
            for t in templates
        ]
        print_table(["template", "digest", "QEMU", "runs under", "MiB on disk", "state"], rows)
