"""Which Python packages the guest has: agents are told."""

import json
import re
from collections.abc import Sequence

from deskfork.agent.prelude import versions_cell
from deskfork.core.errors import TransportError
from deskfork.sandbox.base import Guest

VERSIONS_TIMEOUT_S = 30.0
_VERSION = re.compile(r"[0-9A-Za-z.+!_-]{1,40}")


def installed_packages(guest: Guest, names: Sequence[str]) -> list[str]:
    """Ask the guest which of the distributions it has; returns `name version` for each.

    Raises:
        TransportError: The guest's kernel did not answer as agreed.
    """
    result = guest.run_cell(versions_cell(names), timeout_s=VERSIONS_TIMEOUT_S)
    try:
        found = json.loads(result.stdout)
        return [f"{name} {found[name]}" for name in names if name in found and _VERSION.fullmatch(found[name])]
    except (ValueError, TypeError) as exc:
        what = result.error.value if result.error else result.stdout
        raise TransportError(f"the guest's kernel did not list its packages: {what[:200]!r}") from exc
