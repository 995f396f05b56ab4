"""The steps of one attempt, read as far as they are whole, and read on as more are written."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import ValidationError

from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError
from deskfork.records.paths import AttemptPaths
from deskfork.records.trajectory import ActionClass, LineClass, StepRecord
from deskfork.viewer.pointer import PointerTrail, Spot
from deskfork.viewer.pointer_calls import Point
from deskfork.viewer.screens import screen_name
from deskfork.viewer.visible import one_line, visible

SHOWN_CHARS = 20_000
"""How much of a text is given unless all of it is asked for."""
_TITLE_CHARS = 80
# A pile of these would be read in one go by whoever opens a damaged or foreign run.
_MAX_LINE_BYTES = 64 * 1024 * 1024


class StepHead(StrictModel):
    """What the list of steps says of one, and what is drawn into its screens."""

    number: int
    """Its line in the trajectory, from 1."""
    title: str
    """The beginning of its action."""
    action: ActionClass = "none"
    is_refused: bool = False
    is_timed_out: bool = False
    is_failed: bool = False
    is_final: bool = False
    is_cached: bool = False
    screen: str | None = None
    """File name of the screen after it."""
    seconds: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """Of model, guest, observation and framework."""
    tokens: int | None = None
    spots: tuple[Spot, ...] = ()
    pointer: tuple[Point | None, Point | None] = (None, None)
    """Where the pointer was before and after it, as far as actions told."""


class Text(StrictModel):
    """Something that a guest or a model wrote, fit for showing."""

    text: str
    left_out: int = 0
    """Characters that were left out at the end."""


class StepBody(StrictModel):
    """All that was said and done in one step."""

    number: int
    thought: Text
    raw: Text | None = None
    """The model's whole output, where the thought is only a part of it."""
    code: Text | None
    calls: Text | None
    """The tool calls, as JSON, where they are more than the code."""
    refused: Text | None
    stdout: Text
    stderr: Text
    error: Text | None
    lines: dict[LineClass, int]
    images_dropped: int
    steps_cut: int


@dataclass
class _Line:
    start: int
    length: int


@dataclass
class Steps:
    """Reads one attempt's trajectory.jsonl."""

    paths: AttemptPaths
    heads: list[StepHead] = field(default_factory=list)
    """Of all steps so far; those whose line is corrupt say so."""
    _lines: list[_Line] = field(default_factory=list)
    _trail: PointerTrail = field(default_factory=PointerTrail)
    _end: int = 0
    _reading: Lock = field(default_factory=Lock)

    def refresh(self) -> list[StepHead]:
        """Read on, and return the heads of all steps; a last line without its end is left for the next time."""
        with self._reading:
            try:
                with self.paths.trajectory.open("rb") as stream:
                    stream.seek(self._end)
                    while (line := stream.readline(_MAX_LINE_BYTES)).endswith(b"\n"):
                        self._lines.append(_Line(self._end, len(line)))
                        self._end += len(line)
                        self.heads.append(self._head(line))
            except FileNotFoundError:
                # The attempt has only just begun.
                return []
            except OSError as error:
                raise ConfigError(f"{self.paths.trajectory} cannot be read: {error.strerror or error}") from error
            return list(self.heads)

    def body(self, number: int, *, is_whole: bool = False) -> StepBody:
        """Return all of one step.

        Args:
            number: From 1.
            is_whole: Leave nothing out, however long it is.

        Raises:
            ConfigError: There is no such step, or its line is corrupt.
        """
        with self._reading:
            if not 1 <= number <= len(self._lines):
                raise ConfigError(f"there is no step {number}; the last is {len(self._lines)}")
            line = self._lines[number - 1]
        return _body(number, _parsed(self._bytes(line)), None if is_whole else SHOWN_CHARS)

    def _bytes(self, line: _Line) -> bytes:
        try:
            with self.paths.trajectory.open("rb") as stream:
                stream.seek(line.start)
                return stream.read(line.length)
        except OSError as error:
            raise ConfigError(f"{self.paths.trajectory} cannot be read: {error.strerror or error}") from error

    def _head(self, line: bytes) -> StepHead:
        number, before = len(self._lines), self._trail.place
        try:
            step = _parsed(line)
        except ConfigError as error:
            return StepHead(number=number, title=one_line(str(error), _TITLE_CHARS), is_failed=True)
        spots = self._trail.follow(step.code, is_refused=step.refused is not None)
        return StepHead(
            number=number,
            title=_title(step),
            action=step.action,
            is_refused=step.refused is not None,
            is_timed_out=step.timed_out,
            is_failed=bool(step.error) and step.refused is None,
            is_final=step.is_final,
            is_cached=step.is_cached,
            screen=screen_name(step.screen),
            seconds=(step.model_s, step.guest_s, step.observe_s, step.framework_s),
            tokens=step.tokens.total if step.tokens else None,
            spots=spots,
            pointer=(before, self._trail.place),
        )


def _parsed(line: bytes) -> StepRecord:
    try:
        return StepRecord.model_validate_json(line)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in found["loc"])
        raise ConfigError(f"this line of the trajectory is corrupt: {place} {found['msg']}") from error


def _title(step: StepRecord) -> str:
    if title := _act_title(step.code or ""):
        return one_line(title, _TITLE_CHARS)
    lines = (line.strip() for line in (step.code or step.model_output).split("\n"))
    telling = (line for line in lines if line and not line.startswith(("#", "import ", "from ", "```")))
    return one_line(next(telling, step.code or step.model_output), _TITLE_CHARS)


def _act_title(code: str) -> str:
    """Return a structured act in words; empty for anything else."""
    try:
        act: Any = json.loads(code.split("\n", 1)[0]) if code.startswith("{") else None
    except (ValueError, RecursionError):
        return ""
    if not isinstance(act, dict) or "act" not in act:
        return ""
    values = [value for name, value in act.items() if name != "act" and not (name == "clicks" and value == 1)]
    parts = [part for value in values for part in (value.values() if isinstance(value, dict) else [value])]
    return " ".join(str(part) for part in [act["act"], *parts])


def _body(number: int, step: StepRecord, limit: int | None) -> StepBody:
    thought = _thought(step)
    has_more = len(step.tool_calls) > 1 or (step.tool_calls and step.tool_calls[0].name != "python_interpreter")
    calls = [call.model_dump(mode="json") for call in step.tool_calls] if has_more or step.code is None else []
    return StepBody(
        number=number,
        thought=_text(thought if thought is not None else step.model_output, limit),
        raw=_text(step.model_output, limit) if thought is not None else None,
        code=_text(step.code, limit) if step.code is not None else None,
        calls=_text("\n".join(json.dumps(call, ensure_ascii=False) for call in calls), limit) if calls else None,
        refused=_text(step.refused, limit) if step.refused is not None else None,
        stdout=_text(step.stdout, limit),
        stderr=_text(step.stderr, limit),
        error=_text(step.error, limit) if step.error is not None else None,
        lines=dict(step.lines),
        images_dropped=step.images_dropped,
        steps_cut=step.steps_cut,
    )


def _thought(step: StepRecord) -> str | None:
    """Return what a structured output gives as its thought; None where the output is not one of that kind."""
    try:
        said: Any = json.loads(step.model_output)
    except (ValueError, RecursionError):
        return None
    thought = said.get("thought") if isinstance(said, dict) else None
    return thought if isinstance(thought, str) else None


def _text(text: str, limit: int | None) -> Text:
    cut = text if limit is None else text[:limit]
    return Text(text=visible(cut), left_out=len(text) - len(cut))


def first_screen(paths: AttemptPaths, first: StepHead | None, started: float, ended: float | None) -> str | None:
    """Return the file name of the screen before the first step: the first that was kept.

    Args:
        paths: The attempt's.
        first: Its first step.
        started: When the attempt began, seconds since the epoch.
        ended: When it ended; None if it has not.

    Returns:
        None if none was kept, or the files' times are not those of the trial, because they were copied without them.
    """
    kept = [(_changed_at(place), place.name) for place in paths.screens.glob("*.png") if screen_name(place.name)]
    if not kept:
        return None
    changed, name = min(kept)
    own = next((time for time, other in kept if first and other == first.screen), None)
    is_own_time = started - 1.0 <= changed and (ended is None or changed <= ended + 1.0)
    return name if is_own_time and (own is None or changed <= own) else None


def _changed_at(place: Path) -> float:
    try:
        return place.stat().st_mtime
    except OSError:
        return float("inf")
