"""The `deskfork` command: registers the nouns and maps errors to exit codes."""

import signal
import sys
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from deskfork.cli import agent, bench, image, report, run, sandbox, task, template
from deskfork.cli.doctor import doctor
from deskfork.cli.errors import REQUEST_WRONG, exit_code, sentence, signal_exit_code
from deskfork.cli.output import warn
from deskfork.core.tracing import configure_tracing, flush_tracing

app = typer.Typer(
    name="deskfork",
    help="Fork real desktop machines, run agents in them, and measure what they did.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("doctor")(doctor)
app.add_typer(image.app, name="image")
app.add_typer(template.app, name="template")
app.add_typer(task.app, name="task")
app.add_typer(agent.app, name="agent")
app.add_typer(run.app, name="run")
app.add_typer(report.app, name="report")
app.add_typer(sandbox.app, name="sandbox")
app.add_typer(bench.app, name="bench")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line, `sys.argv` by default, and exit.

    Raises:
        SystemExit: Always: 0 done, 1 unexpected, 2 request wrong, 3 infrastructure failed, 130 by Ctrl-C.
    """
    code = _run(sys.argv[1:] if arguments is None else list(arguments))
    if code == signal_exit_code(signal.SIGINT):
        # While the interpreter goes down it would end by a second one, and no exit code would be told.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    configure_tracing()
    try:
        returned = app(args=arguments, prog_name="deskfork", standalone_mode=False)
    except TyperException as error:
        text = error.format_message()
        warn(text if "\n" in text or not text else f"deskfork: {text} (--help shows what there is)")
        return REQUEST_WRONG
    except (Exception, KeyboardInterrupt) as error:
        warn(sentence(error))
        return exit_code(error)
    finally:
        flush_tracing()
    return returned if isinstance(returned, int) else 0
