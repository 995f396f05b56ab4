"""The options of `run start` and `run plan`, which lie on top of a run's file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from deskfork.trial.config import RunConfig

File = Annotated[Path | None, typer.Argument(metavar="[CONFIG]", help="A YAML file (see configs); options go first.")]
Source = Annotated[
    Path | None, typer.Option(help="A Spider2-V checkout or a folder of tasks; the project's own by default.")
]
Tasks = Annotated[str | None, typer.Option(help="Ids or prefixes with commas between, or all (the default).")]
Wording = Annotated[str | None, typer.Option(help="abstract or verbose: of each pair only the task that is worded so.")]
Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agent", help="An action space (`agent list`), oracle, null, replay:FILE, or a YAML file; may be repeated."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(help="litellm:…, openai:…@URL, transformers:…, scripted:FILE, or scripted:FOLDER with one per task."),
]
Cache = Annotated[Path | None, typer.Option(help="Keep the model's answers in this folder, and ask nothing twice.")]
Provider = Annotated[str | None, typer.Option(help="auto (the default), docker, qemu or fake.")]
Repeats = Annotated[int | None, typer.Option(help="Trials of each task by each agent; 1 by default.")]
Parallel = Annotated[
    str | None, typer.Option(help="Trials at the same time; 1 by default; auto: what cores and free memory allow.")
]
EngineName = Annotated[str | None, typer.Option("--engine", help="local (the default), or ray: on a Ray cluster.")]
RayAddress = Annotated[str | None, typer.Option(help="auto (the default), ray://HOST:PORT, HOST:PORT, or local.")]
MaxSteps = Annotated[int | None, typer.Option(help="Turns of an agent; 15 by default.")]
MaxSeconds = Annotated[float | None, typer.Option(help="Time of an agent; 1800 by default.")]
MaxTokens = Annotated[int | None, typer.Option(help="Of one trial, in and out together; no limit by default.")]
MaxCost = Annotated[float | None, typer.Option(help="Of one trial, US dollars at list price; no limit by default.")]
BudgetSeconds = Annotated[float | None, typer.Option(help="Of the whole run; no limit by default.")]
BudgetTokens = Annotated[int | None, typer.Option(help="Of the whole run; no limit by default.")]
BudgetCost = Annotated[float | None, typer.Option(help="Of the whole run, US dollars; no limit by default.")]
Network = Annotated[
    bool | None, typer.Option("--network/--no-network", help="Whether guests may open connections to the outside.")
]
KeepState = Annotated[bool | None, typer.Option("--keep-state", help="Keep each machine's disk as the agent left it.")]
Out = Annotated[Path | None, typer.Option(help="Parent folder of run directories; ./runs by default.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_KEYS = {
    "max_steps": "limits.steps",
    "max_seconds": "limits.seconds",
    "max_tokens": "limits.tokens",
    "max_cost": "limits.cost_usd",
    "budget_seconds": "budget.seconds",
    "budget_tokens": "budget.tokens",
    "budget_cost": "budget.cost_usd",
    "agent": "agents",
}
"""Where an option's name is not the key that it stands for."""


def resolve(context: typer.Context) -> "RunConfig":
    """Return the configuration that a command's file and options make.

    Raises:
        ConfigError: They make none.
    """
    # Imported here because the agents' libraries take seconds, which no other command should wait for.
    from deskfork.trial.config import resolve_config

    given = {_KEYS.get(name, name): value for name, value in context.params.items() if name not in ("config", "json")}
    parallel = given.pop("parallel")
    count = int(parallel) if isinstance(parallel, str) and parallel.isdecimal() else parallel
    return resolve_config(context.params["config"], {**given, "parallel": count, "agents": given["agents"] or None})
