"""`deskfork image`: the guest's disk, and QEMU's container image."""

import os
from typing import Annotated

import typer

from deskfork.cli.output import print_json, print_table, progress_bar
from deskfork.core.config import cache_dir
from deskfork.sandbox.images.build import build_images, images_in
from deskfork.sandbox.images.guest import DEFAULT_MIRROR

app = typer.Typer(help="Build and list the images that templates are made from.", no_args_is_help=True)


@app.command("build")
def build(
    force: Annotated[bool, typer.Option("--force", help="Build again even if nothing changed.")] = False,
) -> None:
    """Build the guest image and QEMU's container image; what is there already is not built again."""
    mirror = os.environ.get("DESKFORK_DEBIAN_MIRROR", DEFAULT_MIRROR)
    with progress_bar() as show:
        build_images(cache_dir(), show, mirror=mirror, is_forced=force)


@app.command("list")
def list_(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the images in the cache."""
    images = images_in(cache_dir())
    if json:
        print_json([image.model_dump(mode="json") for image in images])
    else:
        rows = [[i.kind, i.digest[:12], f"{i.disk_mib:.0f}", "yes" if i.is_current else "no"] for i in images]
        print_table(["image", "digest", "MiB on disk", "current"], rows)
