"""The agent of the code spaces: smolagents' CodeAgent, with its Python in the guest's kernel."""

import secrets
from collections.abc import Callable
from typing import Any

from smolagents import CodeAgent

from deskfork.agent.actions.space import Parts
from deskfork.agent.executor import GuestExecutor, SilentLogger


def code_agent(parts: Parts, check: Callable[[str], None] | None = None) -> Any:
    """Return a CodeAgent that runs in the guest; `check` raises Refused for code that its space forbids."""
    return CodeAgent(
        tools=[],
        model=parts.model,
        executor=GuestExecutor(parts.hands, parts.view, check),
        additional_authorized_imports=["*"],
        use_structured_outputs_internally=parts.is_scripted,
        # smolagents looks for tags even in structured output: a script must not contain them by chance.
        code_block_tags=_unguessable_tags() if parts.is_scripted else None,
        step_callbacks=list(parts.callbacks),
        logger=SilentLogger(),
    )


def _unguessable_tags() -> tuple[str, str]:
    token = secrets.token_hex(8)
    return f"<cell-{token}>", f"</cell-{token}>"
