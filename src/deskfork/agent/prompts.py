"""What a `code` agent is told; smolagents' own system prompt stays as it is shipped."""

import json
import re
from collections.abc import Sequence
from importlib import resources
from string import Template

from deskfork.agent.config import CodeConfig
from deskfork.core.errors import TransportError
from deskfork.sandbox.base import Guest

VERSIONS_TIMEOUT_S = 30.0
_VERSION = re.compile(r"[0-9A-Za-z.+!_-]{1,40}")
_VERSIONS_CELL = """
def _deskfork_versions(names):
    import json
    from importlib import metadata
    found = {{}}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    print(json.dumps(found))
_deskfork_versions({names!r})
del _deskfork_versions
"""
_OBSERVED = {"screenshot": "a screenshot", "windows": "the list of open windows"}


def task_prompt(
    config: CodeConfig, *, instruction: str, steps: int, screen: tuple[int, int], packages: Sequence[str]
) -> str:
    """Return the task as the agent reads it.

    Args:
        config: What the agent observes, and how long its cells may run.
        instruction: The task's own text.
        steps: How many the agent has.
        screen: Width and height of the screen, pixels.
        packages: What is installed in the guest, as `name version`.
    """
    text = resources.files("deskfork.agent").joinpath("task_prompt.txt").read_text(encoding="utf-8")
    shown = dict.fromkeys(_OBSERVED[observation.kind] for observation in config.observe)
    return Template(text).substitute(
        width=screen[0],
        height=screen[1],
        steps=steps,
        observed=" and ".join(["what the code printed or the error it raised", *shown]),
        packages=", ".join(packages) or "the standard library",
        cell_timeout=f"{config.cell_timeout_s:g}",
        instruction=instruction.strip(),
    )


def installed_packages(guest: Guest, names: Sequence[str]) -> list[str]:
    """Ask the guest which of the distributions it has; returns `name version` for each.

    Raises:
        TransportError: The guest's kernel did not answer as agreed.
    """
    result = guest.run_cell(_VERSIONS_CELL.format(names=tuple(names)), timeout_s=VERSIONS_TIMEOUT_S)
    try:
        found = json.loads(result.stdout)
        return [f"{name} {found[name]}" for name in names if name in found and _VERSION.fullmatch(found[name])]
    except (ValueError, TypeError) as exc:
        what = result.error.value if result.error else result.stdout
        raise TransportError(f"the guest's kernel did not list its packages: {what[:200]!r}") from exc
