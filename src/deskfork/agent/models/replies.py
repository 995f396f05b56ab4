"""Reads scripts of raw replies: YAML, JSON Lines, and the trajectory of an earlier trial."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import JsonValue, TypeAdapter, ValidationError

from deskfork.agent.models.reply import MAX_REPLY_CHARS, Reply, ToolUse
from deskfork.agent.text import encodable
from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError

MAX_JSONL_BYTES = 64 * 1024 * 1024
MAX_YAML_BYTES = 4 * 1024 * 1024
"""A larger script is better written as JSON Lines: reading YAML takes about a second for each megabyte."""
# PyYAML's own error, and what its constructors let through for `!!int ""`, a 13th month and the like.
_NO_YAML = (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)
_FORM = "a reply is text, or an object with content, tool_calls or both"


class _ScriptedReply(StrictModel):
    content: str | None = None
    tool_calls: tuple[ToolUse, ...] = ()


_uses: TypeAdapter[tuple[ToolUse, ...]] = TypeAdapter(tuple[ToolUse, ...])


def read_script(path: Path) -> list[Reply]:
    """Return the replies of a script: a list in a .yaml file, or one JSON value a line in a .jsonl file.

    Each is a string, or an object with `content` and `tool_calls`, a list of `{name, arguments}`. `arguments` is an
    object, or text that is said as it is, for a model that does not know JSON.

    Raises:
        ConfigError: The file is missing, too large, of another kind, or one of its replies is broken.
    """
    if path.suffix in (".yaml", ".yml"):
        found: Iterable[tuple[object, str]] = read_yaml_list(path)
    elif path.suffix == ".jsonl":
        found = read_jsonl(path)
    else:
        raise ConfigError(f"script {path}: its name must end in .yaml, .yml or .jsonl")
    return [_scripted(value, where) for value, where in found]


def read_trajectory(path: Path) -> list[Reply]:
    """Return what the model said in each step of a trial's trajectory.jsonl.

    Raises:
        ConfigError: The file is missing, too large, or a line of it is not of a trajectory.
    """
    return [_recorded(value, where) for value, where in read_jsonl(path)]


def read_jsonl(path: Path) -> Iterator[tuple[object, str]]:
    """Yield each value of a JSON Lines file, and in words where it stands.

    Raises:
        ConfigError: The file is missing, too large, not UTF-8, or a line of it is not JSON.
    """
    for number, line in enumerate(_read(path, MAX_JSONL_BYTES).split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                yield json.loads(line), where
            except (ValueError, RecursionError) as exc:
                raise ConfigError(f"{where}: not JSON: {exc}") from exc


def read_yaml_list(path: Path) -> list[tuple[object, str]]:
    """Return each item of a YAML file that holds a list, and in words where it stands.

    Raises:
        ConfigError: The file is missing, too large, not UTF-8, or holds something else.
    """
    text = _read(path, MAX_YAML_BYTES)
    try:
        return _items(_PlainLoader(text), path)
    except _NO_YAML as exc:
        mark = getattr(exc, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{line}: not YAML: {' '.join(str(exc).split())[:300]}") from exc


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases: a few lines of them can stand for a tree of any size."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_event().start_mark  # type: ignore[no-untyped-call]  # the stubs leave it so
            raise yaml.composer.ComposerError(None, None, "aliases are not supported", mark)
        return super().compose_node(parent, index)


def _items(loader: _PlainLoader, path: Path) -> list[tuple[object, str]]:
    root = loader.get_single_node()
    if not isinstance(root, yaml.SequenceNode):
        raise ConfigError(f"{path}, line 1: a script is a list of replies; {_FORM}")
    return [
        (loader.construct_object(node, deep=True), f"{path}, line {node.start_mark.line + 1}") for node in root.value
    ]


def _read(path: Path, max_bytes: int) -> str:
    try:
        with path.open("rb") as stream:
            raw = stream.read(max_bytes + 1)
        if len(raw) > max_bytes:
            raise ConfigError(f"replay file {path} is larger than {max_bytes // 2**20} MiB")
        return raw.decode("utf-8")
    except OSError as exc:
        raise ConfigError(f"replay file {path}: {exc.strerror or exc}; name an existing file") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"replay file {path} is not UTF-8 text: {exc}") from exc


def _scripted(value: object, where: str) -> Reply:
    if not isinstance(value, str | dict):
        raise ConfigError(f"{where}: {_FORM}, not {type(value).__name__}; quote it if it is meant as text")
    try:
        said = _ScriptedReply(content=value) if isinstance(value, str) else _ScriptedReply.model_validate(value)
    except (ValidationError, RecursionError) as exc:
        raise ConfigError(f"{where}: {_why(exc)}") from exc
    if said.content is None and not said.tool_calls:
        raise ConfigError(f"{where}: {_FORM}")
    for use in said.tool_calls:
        if not isinstance(use.arguments, dict | str):
            raise ConfigError(f"{where}: the arguments of {use.name} must be an object")
    return _said(said.content, said.tool_calls, where)


def _recorded(step: object, where: str) -> Reply:
    if not isinstance(step, dict) or not isinstance(step.get("model_output"), str):
        raise ConfigError(f'{where}: each line must be a step of a trajectory, with "model_output" as text')
    try:
        uses = _uses.validate_python(step.get("tool_calls", ()))
    except (ValidationError, RecursionError) as exc:
        raise ConfigError(f"{where}: tool_calls: {_why(exc)}") from exc
    return _said(step["model_output"] or None, uses, where)


def _said(content: str | None, uses: tuple[ToolUse, ...], where: str) -> Reply:
    size = len(content or "") + sum(len(json.dumps(use.arguments)) for use in uses)
    if size > MAX_REPLY_CHARS:
        raise ConfigError(f"{where}: a reply of more than {MAX_REPLY_CHARS} characters")
    clean: list[dict[str, JsonValue]] = json.loads(
        encodable(json.dumps([use.model_dump() for use in uses], ensure_ascii=False))
    )
    text = None if content is None else encodable(content)
    if text is None and not uses:
        text = ""
    return Reply(content=text, tool_calls=_uses.validate_python(clean), input_tokens=0, output_tokens=0)


def _why(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return "nested too deeply"
    return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)[:3])
