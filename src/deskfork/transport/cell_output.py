"""Collects what the kernel sends about one cell into a bounded CellResult; all of it comes from a hostile guest."""

import base64
import binascii
import json
import re
from dataclasses import dataclass

from deskfork.core.types import FINAL_ANSWER_MIME, CellError, CellResult, RichOutput
from deskfork.transport.kernel_messages import JsonObject, KernelMessage

_RICHEST_FIRST = (FINAL_ANSWER_MIME, "image/png", "image/jpeg", "text/html", "text/plain")
_OUTPUT_OVERHEAD_BYTES = 256
"""Charged per displayed object, so that a million empty ones are bounded too."""
_MAX_ERROR_CHARS = 256 * 1024
"""What is kept of an error: the beginning of its name and value, the end of its traceback."""

# Possessive quantifiers: no input makes it go back, so it takes linear time.
_CONTROL = re.compile(
    r"\x1b\[[0-?]*+[ -/]*+[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*+(?:\x07|\x1b\\)"  # OSC and other strings: titles, links
    r"|\x1b[ -/]*+[0-~]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


def strip_control(text: str) -> str:
    """Return `text` without terminal escape sequences and control characters (tab, line feed and return stay)."""
    return _CONTROL.sub("", text)


@dataclass
class _Shown:
    output: RichOutput
    display_id: str | None
    cost: int


class CellCollector:
    """What one cell has put out so far.

    Args:
        msg_id: The request's id; messages with another parent are ignored.
        max_output_bytes: What is kept of streams and displayed objects together; the beginning is kept.
    """

    def __init__(self, msg_id: str, max_output_bytes: int) -> None:
        self._msg_id = msg_id
        self._max_bytes = max_output_bytes
        self._streams = {"stdout": bytearray(), "stderr": bytearray()}
        self._shown: list[_Shown] = []
        self._used = 0
        self._error: CellError | None = None
        self._clears_next = False
        self._is_idle = self._has_reply = self._is_truncated = False

    @property
    def is_done(self) -> bool:
        """Whether both the idle status and the reply have come; either may come first."""
        return self._is_idle and self._has_reply

    def feed(self, message: KernelMessage) -> None:
        """Take in one message."""
        if message.parent_id != self._msg_id:
            return
        if message.channel == "shell" and message.msg_type == "execute_reply":
            self._take_reply(message)
        elif message.channel == "iopub":
            self._is_truncated |= message.is_cut
            self._take_output(message.msg_type, message.content)

    def result(self, duration_s: float, *, timed_out: bool) -> CellResult:
        """Return what was collected."""
        stdout, stderr = (strip_control(raw.decode("utf-8", "replace")) for raw in self._streams.values())
        return CellResult(
            stdout=stdout,
            stderr=stderr,
            outputs=tuple(shown.output for shown in self._shown),
            duration_s=duration_s,
            error=self._error,
            timed_out=timed_out,
            is_truncated=self._is_truncated,
        )

    def _take_reply(self, message: KernelMessage) -> None:
        self._has_reply = True
        if self._error is None and (message.is_cut or message.content.get("status") != "ok"):
            self._error = _cell_error(message.content)

    def _take_output(self, msg_type: str, content: JsonObject) -> None:
        match msg_type:
            case "status":
                self._is_idle |= content.get("execution_state") == "idle"
            case "stream":
                self._take_stream(content)
            case "display_data" | "execute_result":
                self._show(content)
            case "update_display_data":
                self._update(content)
            case "clear_output":
                self._clears_next = True
                if content.get("wait") is not True:
                    self._clear_if_due()
            case "error":
                self._error = _cell_error(content)

    def _take_stream(self, content: JsonObject) -> None:
        name, text = content.get("name"), content.get("text")
        if name not in ("stdout", "stderr") or not isinstance(text, str):
            return
        self._clear_if_due()
        raw = text.encode("utf-8", "replace")
        kept = raw[: self._max_bytes - self._used]
        self._is_truncated |= len(kept) < len(raw)
        self._used += len(kept)
        self._streams[name] += kept

    def _show(self, content: JsonObject) -> None:
        self._clear_if_due()
        if (output := _richest(content)) is not None:
            self._keep(_Shown(output, _display_id(content), _cost(output)))

    def _update(self, content: JsonObject) -> None:
        output, display_id = _richest(content), _display_id(content)
        if output is None or display_id is None:
            return
        for index, shown in enumerate(self._shown):
            if shown.display_id == display_id:
                cost = _cost(output)
                if self._used - shown.cost + cost > self._max_bytes:
                    self._is_truncated = True
                    return
                self._used += cost - shown.cost
                self._shown[index] = _Shown(output, display_id, cost)

    def _keep(self, shown: _Shown) -> None:
        if self._used + shown.cost > self._max_bytes:
            self._is_truncated = True
            return
        self._used += shown.cost
        self._shown.append(shown)

    def _clear_if_due(self) -> None:
        if self._clears_next:
            self._streams = {"stdout": bytearray(), "stderr": bytearray()}
            self._shown, self._used, self._clears_next = [], 0, False


def _richest(content: JsonObject) -> RichOutput | None:
    bundle = content.get("data")
    if not isinstance(bundle, dict):
        return None
    plain = bundle.get("text/plain")
    text = _clean(plain) if isinstance(plain, str) else ""
    for mime in _RICHEST_FIRST:
        if mime in bundle and (value := _decoded(mime, bundle[mime])) is not None:
            return RichOutput(mime, value, text)
    return None


def _decoded(mime: str, value: object) -> str | bytes | None:
    if mime == FINAL_ANSWER_MIME:
        return value if isinstance(value, str) else json.dumps(value)
    if not isinstance(value, str):
        return None
    if not mime.startswith("image/"):
        return _clean(value)
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        return None


def _display_id(content: JsonObject) -> str | None:
    transient = content.get("transient")
    found = transient.get("display_id") if isinstance(transient, dict) else None
    return found if isinstance(found, str) else None


def _cost(output: RichOutput) -> int:
    return _OUTPUT_OVERHEAD_BYTES + len(output.content) + len(output.text)


def _cell_error(content: JsonObject) -> CellError:
    name, value, lines = content.get("ename"), content.get("evalue"), content.get("traceback")
    joined = "\n".join(line for line in lines if isinstance(line, str)) if isinstance(lines, list) else ""
    if not isinstance(name, str):
        status = content.get("status")
        return CellError("UnknownError", f"the kernel replied {str(status)[:100]!r} without saying why", "")
    said = _clean(value)[:_MAX_ERROR_CHARS] if isinstance(value, str) else ""
    return CellError(_clean(name)[:_MAX_ERROR_CHARS], said, _clean(joined)[-_MAX_ERROR_CHARS:])


def _clean(text: str) -> str:
    # A lone surrogate is legal in JSON but cannot be written to a file as UTF-8.
    return strip_control(text.encode("utf-8", "replace").decode())
