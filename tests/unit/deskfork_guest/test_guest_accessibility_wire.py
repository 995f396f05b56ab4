"""Guards the reading of D-Bus: calls that a bus would refuse, and bytes of hostile programs that crash the observer."""

import struct
from collections.abc import Callable

import pytest
from accessible_parts import marshalled, message, parse_call
from hypothesis import given
from hypothesis import strategies as st

from deskfork_guest.accessibility.names import ROLES, role_name, state_names
from deskfork_guest.accessibility.wire import (
    Malformed,
    make_call,
    message_size,
    parse_bits,
    parse_number,
    parse_rectangle,
    parse_references,
    parse_text,
    parse_u32,
    parse_variant_text,
    reply_serial,
)

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
U32 = st.integers(0, (1 << 32) - 1)
I32 = st.integers(-(1 << 31), (1 << 31) - 1)
LITTLE_ENDIAN, BIG_ENDIAN = b"l", b"B"


@given(serial=st.integers(1, (1 << 32) - 1), path=WORDS, destination=WORDS, member=WORDS, argument=WORDS)
def test_a_call_says_what_it_was_made_of(serial: int, path: str, destination: str, member: str, argument: str) -> None:
    body = marshalled("s", argument)
    raw = make_call(destination, "an.interface", member, "s", body)(serial, path)
    assert message_size(raw, 0)[0] == len(raw)
    call = parse_call(raw)
    assert (call.serial, call.path, call.destination, call.member) == (serial, path, destination, member)
    assert (call.fields[2], call.fields[8], call.body) == ("an.interface", "s", body)


@given(serial=U32, kind=st.sampled_from([2, 3]), text=WORDS)
def test_a_reply_is_known_by_the_call_that_it_answers(serial: int, kind: int, text: str) -> None:
    raw = message(kind, 7, serial, "s", marshalled("s", text))
    size, start = message_size(b"before" + raw, 6)
    assert (size, reply_serial(raw)) == (len(raw), serial)
    assert parse_text(raw[start:]) == text


@pytest.mark.parametrize("kind", [1, 4, 0, 200])
def test_calls_and_signals_answer_nothing(kind: int) -> None:
    assert reply_serial(message(kind, 7, 5, "", b"")) == 0


@given(st.binary(min_size=16, max_size=200))
def test_no_header_does_worse_than_to_be_refused(raw: bytes) -> None:
    try:
        message_size(raw, 0)
        reply_serial(raw)
    except Malformed:
        return


@given(raw=st.binary(max_size=200), order=st.sampled_from([LITTLE_ENDIAN, BIG_ENDIAN]))
def test_no_header_of_a_reply_does_worse_than_to_be_refused(raw: bytes, order: bytes) -> None:
    damaged = order + b"\2\0\1" + raw.ljust(12, b"\0")
    try:
        message_size(damaged, 0)
        reply_serial(damaged)
    except Malformed:
        return


@given(number=U32, words=st.tuples(U32, U32), place=st.tuples(I32, I32, I32, I32), value=st.floats(allow_nan=False))
def test_numbers_are_read_as_they_were_written(
    number: int, words: tuple[int, int], place: tuple[int, int, int, int], value: float
) -> None:
    assert parse_u32(marshalled("u", number)) == number
    assert parse_bits(marshalled("au", list(words))) == words[0] | words[1] << 32
    assert parse_rectangle(marshalled("(iiii)", place)) == place
    assert parse_number(marshalled("v", ("d", value))) == value


@given(texts=st.lists(WORDS, max_size=6), limit=st.integers(0, 8))
def test_texts_are_read_as_they_were_written(texts: list[str], limit: int) -> None:
    pairs = list(zip(texts, texts[::-1], strict=True))
    assert parse_references(marshalled("a(so)", pairs), limit) == pairs[:limit]
    for text in texts:
        assert parse_variant_text(marshalled("v", ("s", text))) == text


PARSERS = [
    parse_bits,
    parse_number,
    parse_rectangle,
    parse_text,
    parse_u32,
    parse_variant_text,
    lambda raw: parse_references(raw, 9),
]


@pytest.mark.parametrize("parse", PARSERS)
@given(kind=st.sampled_from(["u", "s", "v", "a(so)", "au"]), text=WORDS, cut=st.integers(0, 60), noise=st.binary())
def test_what_is_something_else_does_no_worse_than_to_be_refused(
    parse: Callable[[bytes], object], kind: str, text: str, cut: int, noise: bytes
) -> None:
    values = {"u": 7, "s": text, "v": ("s", text), "a(so)": [(text, text)], "au": [1, 2]}
    raw = marshalled(kind, values[kind])
    for damaged in (raw, raw[:cut] + noise, raw[:cut] + noise + raw[cut:], noise):
        try:
            parse(damaged)
        except Malformed:
            continue


def test_what_is_no_utf_8_is_replaced() -> None:
    assert parse_text(struct.pack("<I", 3) + b"a\xffb\0") == "a\N{REPLACEMENT CHARACTER}b"


def test_roles_and_states_have_atspis_names() -> None:
    # Numbers of atspi-constants.h, here and there in the list.
    assert [role_name(n) for n in (0, 23, 43, 60, 75, 79, 95, 116, 129)] == [
        "invalid",
        "frame",
        "push button",
        "terminal",
        "application",
        "entry",
        "document web",
        "static",
        "push button menu",
    ]
    assert role_name(len(ROLES)) == "extended"
    assert state_names(1 << 12 | 1 << 4 | 1 << 25, is_control=True) == ["checked", "focused", "disabled"]
    assert state_names(1 << 24, is_control=True) == []
