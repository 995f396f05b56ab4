"""Action space `computer+tools`: the computer's tools, a shell and files, and the screen only on request."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from deskfork.agent.actions.computer import ComputerAgent, computer_tools
from deskfork.agent.actions.performing import isolated, note
from deskfork.agent.actions.refusal import Refused
from deskfork.agent.actions.space import ActionSpace, Parts, load_prompt
from deskfork.agent.actions.tool_agent import GuestTool
from deskfork.agent.text import clip
from deskfork.records.trajectory import LineClass

MAX_FILE_BYTES = 4 * 1024 * 1024
"""Of what the file tools read or write."""
_FILE_ACT = """
from pathlib import Path

file = Path("/home/user/Desktop") / Path(given["path"]).expanduser()
if act == "create":
    file.parent.mkdir(parents=True, exist_ok=True)
    text = given["text"]
else:
    if file.stat().st_size > limit:
        raise ValueError(f"{file} is larger than {limit // 2**20} MiB")
    text = file.read_bytes().decode("utf-8")
lines = text.split("\\n")
if act == "view":
    first = max(1, given.get("first_line", 1))
    shown = lines[first - 1 : given.get("last_line", len(lines))]
    print("\\n".join(f"{number}\\t{line}" for number, line in enumerate(shown, start=first)) or "[no such lines]")
elif act == "str_replace" and (not given["old"] or text.count(given["old"]) != 1):
    raise ValueError(f"`old` must stand in {file} exactly once, it stands there {text.count(given['old'])} times")
elif act == "insert" and not 0 <= given["line"] <= len(lines):
    raise ValueError(f"{file} has {len(lines)} lines, there is no line {given['line']}")
if act == "str_replace":
    text = text.replace(given["old"], given["new"])
if act == "insert":
    new = given["text"]
    lines[given["line"] : given["line"]] = new[: -new.endswith("\\n") or None].split("\\n")
    text = "\\n".join(lines)
if act != "view":
    content = text.encode("utf-8", "replace")
    if len(content) > limit:
        raise ValueError(f"{file} would be larger than {limit // 2**20} MiB")
    file.write_bytes(content)
    print(f"{file} is written, {len(content)} bytes")
"""
_PATH = {"type": "string", "description": "path of the file, from /home/user/Desktop if it is relative"}


class FileTools:
    """The shell, and files of the guest: viewed, made, and changed in place."""

    def __init__(self, parts: Parts) -> None:
        self._hands = parts.hands

    def tools(self) -> list[GuestTool]:
        """Return the tools."""
        text, line = {"type": "string", "description": "the text"}, {"type": "integer", "description": "line, from 1"}
        return [
            self._tool("bash", "Run a Bash script.", {"command": {**text, "description": "the script"}}, self._bash),
            self._tool(
                "view",
                "Show a text file with its line numbers, or some of its lines.",
                {"path": _PATH, "first_line": {**line, "nullable": True}, "last_line": {**line, "nullable": True}},
                partial(self._file, "view"),
            ),
            self._tool(
                "create", "Make a file, or replace it.", {"path": _PATH, "text": text}, partial(self._file, "create")
            ),
            self._tool(
                "str_replace",
                "Replace a text that stands exactly once in a file.",
                {"path": _PATH, "old": {**text, "description": "what stands there"}, "new": text},
                partial(self._file, "str_replace"),
            ),
            self._tool(
                "insert",
                "Insert lines after a line of a file.",
                {
                    "path": _PATH,
                    "line": {**line, "description": "after which line; 0: at the top"},
                    "text": text,
                },
                partial(self._file, "insert"),
            ),
        ]

    def _tool(self, name: str, told: str, inputs: dict[str, Any], act: Callable[[dict[str, Any]], str]) -> GuestTool:
        kind: LineClass = "shell" if name == "bash" else "file"

        def do(given: dict[str, Any]) -> str:
            for key, value in given.items():
                wanted = int if inputs[key]["type"] == "integer" else str
                if not isinstance(value, wanted) or isinstance(value, bool):
                    raise Refused(f"{name}: {key} must be of type {inputs[key]['type']}, not {value!r}"[:500])
            note(self._hands.acted, json.dumps({"act": name, **given}, ensure_ascii=False), kind)
            return act(given)

        return GuestTool(name, told, inputs, do)

    def _bash(self, given: dict[str, Any]) -> str:
        done = self._hands.command(given["command"])
        parts = [clip(done.stdout, self._hands.limits.output_chars)]
        if done.stderr:
            parts.append("[stderr]\n" + clip(done.stderr, self._hands.limits.output_chars // 4))
        parts.append(f"[killed after {done.duration_s:.0f} s]" if done.timed_out else f"[exit code {done.exit_code}]")
        return "\n".join(filter(None, parts))

    def _file(self, name: str, given: dict[str, Any]) -> str:
        result = self._hands.run(isolated(_FILE_ACT, {"act": name, "given": given, "limit": MAX_FILE_BYTES}))
        if result.error is not None:
            raise Refused(f"{name}: {result.error.value or result.error.name}"[:2000])
        if result.timed_out:
            raise Refused(f"{name}: not done after {result.duration_s:.0f} s")
        return clip(result.stdout, self._hands.limits.output_chars)


def _all_tools(parts: Parts, pictures: list[Any]) -> list[GuestTool]:
    return [*computer_tools(parts, pictures), *FileTools(parts).tools()]


def build(parts: Parts) -> Any:
    """Return the agent."""
    return ComputerAgent(parts, _all_tools)


SPACE = ActionSpace(
    name="computer+tools",
    summary="computer, plus bash and view, create, str_replace and insert for files; screenshots only on request",
    source="Programming with Pixels, category 2",
    prompt=load_prompt("computer+tools"),
    build=build,
    observe=(),
    impossible={"terminal": "its tools answer by themselves"},
    answers=("what each tool answers",),
)
