"""Models that say what they were given: the brains of the oracle and replay agents, and scripts of raw replies."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from smolagents import Model

from deskfork.agent.models.built import BuiltModel, Price
from deskfork.agent.models.call import Call, call_of
from deskfork.agent.models.context import ContextCut
from deskfork.agent.models.replies import read_jsonl, read_script, read_trajectory
from deskfork.agent.models.reply import MAX_REPLY_CHARS, Reply, chat_message
from deskfork.agent.models.settings import ModelSettings
from deskfork.agent.text import encodable
from deskfork.core.errors import ConfigError, InfraError

MAX_CELL_CHARS = MAX_REPLY_CHARS


class RepliesModel(Model):  # type: ignore[misc]  # smolagents ships no types
    """Says the given replies, one a call, whatever it is asked; they cost no tokens."""

    def __init__(self, replies: Sequence[Reply], name: str) -> None:
        super().__init__(model_id=name)
        self._replies = list(replies)
        self._next = 0
        self.last: Call | None = None
        """The latest call, for those who use this model without a meter."""

    @property
    def has_more(self) -> bool:
        """Whether a reply is left."""
        return self._next < len(self._replies)

    def generate(
        self,
        messages: list[Any],
        stop_sequences: list[str] | None = None,
        response_format: dict[str, str] | None = None,
        tools_to_call_from: list[Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the next reply as the model's message.

        Raises:
            InfraError: All have been said; see `has_more`.
        """
        if not self.has_more:
            raise InfraError(f"model '{self.model_id}': asked once more after its {len(self._replies)} replies")
        reply = self._replies[self._next]
        self._next += 1
        self.last = call_of(reply, attempts=1, cut=ContextCut())
        return chat_message(reply)


class ScriptedModel(RepliesModel):
    """Yields the given cells, one a call, as structured output: JSON carries any code, with fences and tags in it."""

    def __init__(self, cells: Sequence[str], name: str) -> None:
        said = [
            json.dumps({"thought": f"Cell {number} of {len(cells)}.", "code": cell})
            for number, cell in enumerate(cells, start=1)
        ]
        super().__init__([Reply(content=text, input_tokens=0, output_tokens=0) for text in said], name)


def scripted_model(spec: str, name: str, _settings: ModelSettings) -> BuiltModel:
    """Make the model that says a script's replies; `name` is the file's path."""
    return _built(spec, name, read_script)


def replay_model(spec: str, name: str, _settings: ModelSettings) -> BuiltModel:
    """Make the model that says again what one said in an earlier trial; `name` is the path of a trajectory.jsonl."""
    return _built(spec, name, read_trajectory)


def _built(spec: str, name: str, read: Callable[[Path], list[Reply]]) -> BuiltModel:
    model = RepliesModel(read(Path(name).expanduser()), spec)
    return BuiltModel(
        model, spec, is_remote=False, takes_images=True, price=Price(0.0, 0.0), has_more=lambda: model.has_more
    )


def read_replay(path: Path) -> list[str]:
    """Return the cells of a JSON Lines file: the `code` of each object; a step without code (null) is left out.

    Raises:
        ConfigError: The file is missing, too large, or a line of it is broken.
    """
    cells = [_code_of(step, where) for step, where in read_jsonl(path)]
    return [cell for cell in cells if cell is not None]


def _code_of(step: object, where: str) -> str | None:
    if not isinstance(step, dict) or "code" not in step:
        raise ConfigError(f'{where}: each line must be an object with at least "code"')
    code = step["code"]
    if code is not None and not isinstance(code, str):
        raise ConfigError(f'{where}: "code" must be text, not {type(code).__name__}')
    if code is not None and len(code) > MAX_CELL_CHARS:
        raise ConfigError(f"{where}: a cell of more than {MAX_CELL_CHARS} characters")
    return encodable(code) if code is not None else None
