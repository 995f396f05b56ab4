"""`deskfork agent`: which agents, action spaces and observations there are, and what a model is told by them."""

from typing import Annotated

import typer

from deskfork.cli.output import print_json, print_line, print_table

app = typer.Typer(no_args_is_help=True, help="List agents, and show what they are told.")
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_agents(json: Json = False) -> None:
    """List the action spaces, the agents that need no model, and the step callbacks that are installed."""
    # Imported here because the agent's libraries take seconds, which no other command should wait for.
    from deskfork.agent.catalogue import catalogue

    found = catalogue()
    if json:
        print_json(found.model_dump(mode="json")["entries"])
        return
    print_table(
        ["kind", "name", "what it is", "source", "observes", "does not go with"],
        [
            [entry.kind, entry.name, entry.summary, entry.source, ", ".join(entry.observes), ", ".join(entry.conflicts)]
            for entry in found.entries
        ],
    )


@app.command("show")
def show(
    agent: Annotated[str, typer.Argument(help="An action space, or the path of an agent's YAML file.")],
    json: Json = False,
) -> None:
    """Show an agent's configuration in full, and its prompts as the model will see them."""
    from deskfork.agent.catalogue import describe

    found = describe(agent)
    if json:
        print_json(found.model_dump(mode="json"))
        return
    print_line(found.text())
