"""`deskfork report`: what runs show, with intervals, comparisons and failure modes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deskfork.cli.output import print_json, print_line, print_rendered, warn
from deskfork.core.errors import ConfigError
from deskfork.records.reader import read_run
from deskfork.report.markdown import markdown_sections
from deskfork.report.render import render_sections

if TYPE_CHECKING:
    from deskfork.report.model import Report

app = typer.Typer(help="Report on runs, and compare them.", no_args_is_help=True)
Html = Annotated[Path | None, typer.Option(help="Write one self-contained page with plots to this file as well.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown, with the list of trials.")]


@app.command("show")
def show(
    run_dir: Annotated[Path, typer.Argument(help="A run's directory.")],
    html: Html = None,
    json: Json = False,
    markdown: Markdown = False,
) -> None:
    """Report on one run, also one that was cut off: rates, comparisons of its agents, effort, failure modes."""
    _tell([run_dir], html, json=json, markdown=markdown)


@app.command("compare")
def compare(
    run_dirs: Annotated[list[Path], typer.Argument(help="Directories of two runs or more.")],
    html: Html = None,
    json: Json = False,
    markdown: Markdown = False,
) -> None:
    """Report on several runs together, and compare their agents; warns where the runs were not made alike."""
    if len({run_dir.resolve() for run_dir in run_dirs}) < max(2, len(run_dirs)):
        raise ConfigError("report compare wants two different runs or more; `report show` is for one")
    _tell(run_dirs, html, json=json, markdown=markdown)


def _tell(run_dirs: Sequence[Path], html: Path | None, *, json: bool, markdown: bool) -> None:
    # Imported here because scipy and statsmodels take a second, which no other command should wait for.
    from deskfork.report.build import build_report
    from deskfork.report.tables import headline, sections, trial_section

    report = build_report([read_run(run_dir) for run_dir in run_dirs])
    if html is not None:
        _write_page(report, html)
    if json:
        print_json(report.model_dump(mode="json"))
    elif markdown:
        print_line(markdown_sections(headline(report), report.warnings, [*sections(report), trial_section(report)]))
    else:
        print_rendered(render_sections(headline(report), report.warnings, sections(report)))


def _write_page(report: "Report", html: Path) -> None:
    from deskfork.core.atomic import write_atomic
    from deskfork.report.page import render_page

    try:
        write_atomic(html, render_page(report, html))
    except OSError as error:
        raise ConfigError(f"--html {html} cannot be written: {error.strerror or error}") from error
    warn(f"deskfork: {html} is written")
