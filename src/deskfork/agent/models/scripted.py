"""A model that says what it was given: the brain of the oracle and replay agents."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smolagents import ChatMessage, MessageRole, Model, TokenUsage

from deskfork.agent.text import encodable
from deskfork.core.errors import ConfigError

MAX_REPLAY_BYTES = 64 * 1024 * 1024
MAX_CELL_CHARS = 1024 * 1024


class ScriptedModel(Model):  # type: ignore[misc]  # smolagents ships no types
    """Yields the given cells, one a call, as structured output: JSON carries any code, with fences and tags in it."""

    def __init__(self, cells: Sequence[str], name: str) -> None:
        super().__init__(model_id=name)
        self._cells = list(cells)
        self._next = 0

    @property
    def has_more(self) -> bool:
        """Whether a cell is left."""
        return self._next < len(self._cells)

    def generate(
        self,
        messages: list[Any],
        stop_sequences: list[str] | None = None,
        response_format: dict[str, str] | None = None,
        tools_to_call_from: list[Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the next cell as the model's message; it costs no tokens."""
        self._next += 1
        thought = f"Cell {self._next} of {len(self._cells)}."
        content = json.dumps({"thought": thought, "code": self._cells[self._next - 1]})
        return ChatMessage(role=MessageRole.ASSISTANT, content=content, token_usage=TokenUsage(0, 0))


def read_replay(path: Path) -> list[str]:
    """Return the cells of a JSON Lines file: the `code` of each object; a step without code (null) is left out.

    Raises:
        ConfigError: The file is missing, too large, or a line of it is broken.
    """
    try:
        if path.stat().st_size > MAX_REPLAY_BYTES:
            raise ConfigError(f"replay file {path} is larger than {MAX_REPLAY_BYTES // 2**20} MiB")
        text = path.read_text(encoding="utf-8")
    except OSError as exc:
        raise ConfigError(f"replay file {path}: {exc.strerror or exc}; name an existing JSON Lines file") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"replay file {path} is not UTF-8 text: {exc}") from exc
    cells = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            code = _code_of(line, f"{path}, line {number}")
            if code is not None:
                cells.append(code)
    return cells


def _code_of(line: str, where: str) -> str | None:
    try:
        step = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as exc:
        raise ConfigError(f"{where}: not JSON: {exc}") from exc
    if not isinstance(step, dict) or "code" not in step:
        raise ConfigError(f'{where}: each line must be an object with at least "code"')
    code = step["code"]
    if code is not None and not isinstance(code, str):
        raise ConfigError(f'{where}: "code" must be text, not {type(code).__name__}')
    if code is not None and len(code) > MAX_CELL_CHARS:
        raise ConfigError(f"{where}: a cell of more than {MAX_CELL_CHARS} characters")
    return encodable(code) if code is not None else None
