"""Guards against output of a hostile cell that fills the host's memory, passes for another's, or reaches a terminal."""

import base64
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.core.types import FINAL_ANSWER_MIME, CellError, CellResult, RichOutput
from deskfork.transport.cell_output import CellCollector, strip_control
from deskfork.transport.kernel_messages import KernelMessage

PNG = b"\x89PNG not really"


def message(msg_type: str, channel: str = "iopub", parent: str = "mine", **content: Any) -> KernelMessage:
    return KernelMessage(channel, msg_type, "x", parent, "s", content)


def stream(text: object, name: str = "stdout", parent: str = "mine") -> KernelMessage:
    return message("stream", parent=parent, name=name, text=text)


def display(msg_type: str = "display_data", display_id: str | None = None, **bundle: Any) -> KernelMessage:
    bundle = {key.replace("__", "/"): value for key, value in bundle.items()}
    return message(msg_type, data=bundle, transient={"display_id": display_id} if display_id else {})


IDLE = message("status", execution_state="idle")
REPLY = message("execute_reply", "shell", status="ok")


def result_of(*messages: KernelMessage, limit: int = 10_000) -> CellResult:
    collector = CellCollector("mine", limit)
    for each in messages:
        collector.feed(each)
    return collector.result(0.0, timed_out=False)


@pytest.mark.parametrize("order", [(IDLE, REPLY), (REPLY, IDLE)])
def test_done_needs_idle_and_reply_in_either_order(order: tuple[KernelMessage, KernelMessage]) -> None:
    collector = CellCollector("mine", 100)
    collector.feed(order[0])
    assert not collector.is_done
    collector.feed(order[1])
    assert collector.is_done


@pytest.mark.parametrize(
    "forged",
    [
        message("status", parent="other", execution_state="idle"),
        message("status", parent="", execution_state="idle"),
        message("status", "shell", execution_state="idle"),
        message("status", execution_state="busy"),
        message("status", execution_state=["idle"]),
        message("status"),
    ],
)
def test_forged_idle_is_not_believed(forged: KernelMessage) -> None:
    collector = CellCollector("mine", 100)
    collector.feed(REPLY)
    collector.feed(forged)
    assert not collector.is_done


@pytest.mark.parametrize("channel", ["iopub", "control", "stdin"])
def test_a_reply_on_another_channel_is_not_believed(channel: str) -> None:
    collector = CellCollector("mine", 100)
    collector.feed(IDLE)
    collector.feed(message("execute_reply", channel, status="ok"))
    assert not collector.is_done


def test_streams_are_joined_separately_and_others_ignored() -> None:
    result = result_of(
        stream("a"), stream("1", "stderr"), stream("b"), stream("no", parent="other"), stream("no", "stdlog"), stream(7)
    )
    assert (result.stdout, result.stderr) == ("ab", "1")


def test_an_escape_sequence_split_over_messages_is_removed() -> None:
    assert result_of(stream("red \x1b[3"), stream("1mtext\x1b[0m")).stdout == "red text"


def test_output_is_bounded_in_bytes_and_says_so() -> None:
    result = result_of(stream("é" * 80), stream("x" * 100, "stderr"), stream("y"), limit=200)
    assert (len(result.stdout), len(result.stderr), result.is_truncated) == (80, 40, True)
    assert not result_of(stream("x" * 200), limit=200).is_truncated


def test_a_million_tiny_messages_stay_small() -> None:
    collector = CellCollector("mine", 1000)
    for _ in range(50_000):
        collector.feed(stream("x"))
        collector.feed(display(text__plain=""))
    result = collector.result(0.0, timed_out=False)
    assert len(result.stdout) <= 1000
    assert len(result.outputs) <= 4
    assert result.is_truncated


@pytest.mark.parametrize(
    ("bundle", "expected"),
    [
        ({"text/plain": "t", "text/html": "<b>", "image/png": base64.b64encode(PNG).decode()}, ("image/png", PNG)),
        ({"text/plain": "t", "image/png": base64.encodebytes(PNG).decode()}, ("image/png", PNG)),
        ({"text/plain": "t", "image/jpeg": "/9j/"}, ("image/jpeg", b"\xff\xd8\xff")),
        ({"text/plain": "t", "image/png": "!!!!"}, ("text/plain", "t")),
        ({"text/plain": "t", "image/png": "AAA"}, ("text/plain", "t")),
        ({"text/plain": "t", "image/png": ["AAAA"]}, ("text/plain", "t")),
        ({"text/plain": "t", "text/html": "<i>"}, ("text/html", "<i>")),
        ({"text/plain": "t", FINAL_ANSWER_MIME: {"a": 1}}, (FINAL_ANSWER_MIME, '{"a": 1}')),
        ({"text/plain": "t", FINAL_ANSWER_MIME: '{"a": 1}'}, (FINAL_ANSWER_MIME, '{"a": 1}')),
    ],
)
def test_the_richest_valid_form_is_kept(bundle: dict[str, Any], expected: tuple[str, str | bytes]) -> None:
    (output,) = result_of(message("execute_result", data=bundle)).outputs
    assert output == RichOutput(*expected, text="t")


@pytest.mark.parametrize("data", [None, [], "x", {}, {"application/x-thing": "1"}, {"text/plain": 1}])
def test_a_bundle_without_a_known_form_shows_nothing(data: object) -> None:
    assert result_of(message("display_data", data=data)).outputs == ()


def test_an_updated_display_replaces_what_it_showed() -> None:
    result = result_of(
        display(display_id="a", text__plain="0 %"),
        display(text__plain="other"),
        display("update_display_data", display_id="a", text__plain="100 %"),
        display("update_display_data", display_id="unknown", text__plain="lost"),
    )
    assert [output.content for output in result.outputs] == ["100 %", "other"]


def test_updates_cannot_grow_beyond_the_limit() -> None:
    grown = display("update_display_data", display_id="a", text__plain="x" * 5000)
    result = result_of(display(display_id="a", text__plain="0"), grown, limit=1000)
    assert result.outputs[0].content == "0"
    assert result.is_truncated


def test_clear_output_clears_now_or_before_the_next_output() -> None:
    cleared, waiting = message("clear_output", wait=False), message("clear_output", wait=True)
    assert result_of(stream("a"), cleared).stdout == ""
    assert result_of(stream("a"), waiting).stdout == "a"
    result = result_of(stream("a"), display(text__plain="1"), waiting, stream("b"))
    assert (result.stdout, result.outputs) == ("b", ())


def test_an_error_keeps_what_was_printed_and_loses_its_colours() -> None:
    error = message("error", ename="E", evalue="\x1b[31mbad\x1b[0m", traceback=["\x1b[0;31mline 1\x1b[0m", 5, "line 2"])
    reply = message("execute_reply", "shell", status="error", ename="E", evalue="bad", traceback=[])
    result = result_of(stream("before"), error, IDLE, reply)
    assert result.stdout == "before"
    assert result.error == CellError("E", "bad", "line 1\nline 2")


def test_a_giant_error_is_cut_to_the_end_of_its_traceback() -> None:
    error = message("error", ename="E" * 10**6, evalue="v" * 10**6, traceback=["x" * 10**6, "the end"])
    found = result_of(error).error
    assert found is not None
    assert found.traceback.endswith("the end")
    assert max(len(found.name), len(found.value), len(found.traceback)) <= 256 * 1024


@pytest.mark.parametrize("status", ["error", "aborted", None, 5])
def test_a_reply_that_is_not_ok_is_an_error_even_without_details(status: object) -> None:
    assert result_of(message("execute_reply", "shell", status=status)).error is not None


def test_a_cut_reply_still_ends_the_cell_as_an_error() -> None:
    collector = CellCollector("mine", 100)
    collector.feed(IDLE)
    collector.feed(KernelMessage("shell", "execute_reply", "x", "mine", "s", {}, is_cut=True))
    assert collector.is_done
    assert collector.result(0.0, timed_out=False).error is not None


def test_lone_surrogates_cannot_break_who_writes_the_text() -> None:
    content = json.loads('{"text/plain": "\\ud800"}')
    result = result_of(stream(content["text/plain"]), message("display_data", data=content))
    assert result.stdout.encode() == b"?"
    assert str(result.outputs[0].content).encode() == b"?"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Ba\x1b=b", "ab"),
        ("a\x00\x08\x7f\x9bb\x0c", "ab"),
        ("keep\ttab\r\nlines", "keep\ttab\r\nlines"),
        ("\x1b]never ended", "never ended"),
        ("\x1b[31", "31"),
    ],
)
def test_control_sequences_are_removed(text: str, expected: str) -> None:
    assert strip_control(text) == expected


@given(st.text(alphabet="\x1b[]0;?m\x07\\P (B~a"))
def test_no_escape_survives(text: str) -> None:
    assert "\x1b" not in strip_control(text)


@pytest.mark.parametrize("unit", ["\x1b[", "\x1b]", "\x1b[1;", "\x1b ", "\x1b", "\x1b]a", "1;", " "])
def test_stripping_takes_linear_time(unit: str) -> None:
    hostile = "\x1b[" + unit * (4_000_000 // len(unit))
    started = time.process_time()
    strip_control(hostile)
    assert time.process_time() - started < 5.0
