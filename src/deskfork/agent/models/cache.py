"""Answers of models on disk, so that a study which is repeated, or was interrupted, asks and pays for nothing twice."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from smolagents.models import get_tool_json_schema

from deskfork.agent.models.built import BuiltModel
from deskfork.agent.models.images import parts_of
from deskfork.agent.models.reply import Reply
from deskfork.core.atomic import write_atomic
from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError, InfraError

MAX_FILE_BYTES = 16 * 1024 * 1024
_FORMAT = 1


class _Stored(StrictModel):
    format: int
    key: str
    model: str
    stream: str
    reply: Reply


class ResponseCache:
    """The answers that one run of an agent finds and leaves in a folder, which other runs may use at the same time.

    An answer is kept for what decides about it: the model's spec and endpoint, the messages (images by their pixels),
    the parameters and the schemas of the tools. And for two more things, because a model is asked for draws from what
    it might say, and the same draw must not be taken for another:

    - `stream`: the repeats of a trial are to be independent, so that their scores tell how much luck is in them.
      Served from one stream, all would be the first once more.
    - How often this run has asked exactly that before: an agent that comes to the same point twice asks anew there,
      and may get another answer.

    What is stored is what the model said and billed: an answer from here counts against the limits as it did at first,
    so that a repeated run ends where the first did. Errors are never stored.
    """

    def __init__(self, folder: Path, stream: str) -> None:
        """Use a folder, which is made if it is not there.

        Args:
            folder: Holds one file for each answer, in subfolders.
            stream: Which independent draw this run takes, in words that do not name the task, as in `repeat 2`.

        Raises:
            ConfigError: The folder cannot be made.
        """
        self._folder = folder
        self._stream = stream
        self._asked: Counter[str] = Counter()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ConfigError(f"response cache {folder}: {exc.strerror or exc}; name a folder") from exc

    def key(
        self,
        built: BuiltModel,
        messages: Sequence[Any],
        arguments: Mapping[str, Any],
        digest: Callable[[Any], str],
    ) -> str:
        """Return the key of one more call; a call that is the same as an earlier one of this run has another.

        Args:
            built: The model.
            messages: smolagents' ChatMessages, with images as PIL images.
            arguments: What else `generate` is called with.
            digest: Returns an image's hash.
        """
        tools = arguments.get("tools_to_call_from") or ()
        asked = {
            "format": _FORMAT,
            "model": built.spec,
            "parameters": built.parameters,
            "stream": self._stream,
            "messages": [_plain(message, digest) for message in messages],
            "arguments": {name: value for name, value in arguments.items() if name != "tools_to_call_from"},
            "tools": [get_tool_json_schema(tool) for tool in tools],
        }
        text = json.dumps(asked, sort_keys=True, ensure_ascii=True, default=repr)
        whole = hashlib.sha256(text.encode()).hexdigest()
        self._asked[whole] += 1
        return hashlib.sha256(f"{whole} {self._asked[whole]}".encode()).hexdigest()

    def get(self, key: str) -> Reply | None:
        """Return the stored answer; None where there is none, or only a damaged one."""
        try:
            with self._path(key).open("rb") as stream:
                raw = stream.read(MAX_FILE_BYTES + 1)
            stored = _Stored.model_validate_json(raw if len(raw) <= MAX_FILE_BYTES else b"")
        except (OSError, ValidationError):
            return None
        return stored.reply if stored.key == key and stored.format == _FORMAT else None

    def put(self, key: str, model: str, reply: Reply) -> None:
        """Store an answer; whatever was there is replaced.

        Raises:
            InfraError: It could not be written.
        """
        stored = _Stored(format=_FORMAT, key=key, model=model, stream=self._stream, reply=reply)
        path = self._path(key)
        try:
            path.parent.mkdir(exist_ok=True)
            write_atomic(path, stored.model_dump_json())
        except OSError as exc:
            raise InfraError(f"response cache {path}: {exc.strerror or exc}") from exc

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"


def _plain(message: Any, digest: Callable[[Any], str]) -> list[Any]:
    parts = [[part["type"], digest(part["image"])] if part["type"] == "image" else part for part in parts_of(message)]
    return [str(getattr(message.role, "value", message.role)), parts]
