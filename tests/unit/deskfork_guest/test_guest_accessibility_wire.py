"""Guards the reading of D-Bus: calls that a bus would refuse, and bytes of hostile programs that crash the observer."""

import struct

import pytest
from accessible_parts import ITEMS, marshalled, message, parse_call
from hypothesis import given
from hypothesis import strategies as st

from deskfork_guest.accessibility.items import MAX_ITEMS, parse_items
from deskfork_guest.accessibility.names import ROLES, role_name, state_names
from deskfork_guest.accessibility.wire import Body, Malformed, make_call, message_size, reply_serial

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
U32 = st.integers(0, (1 << 32) - 1)
ITEM = st.tuples(
    st.tuples(WORDS, WORDS),
    st.tuples(WORDS, WORDS),
    st.tuples(WORDS, WORDS),
    st.integers(-1, 1000),
    st.integers(0, 1000),
    st.lists(st.sampled_from(["org.a11y.atspi.Text", "org.a11y.atspi.EditableText", "org.a11y.atspi.Action", "other"])),
    WORDS,
    U32,
    WORDS,
    st.tuples(U32, U32),
)


@given(serial=st.integers(1, (1 << 32) - 1), path=WORDS, destination=WORDS, member=WORDS, argument=WORDS)
def test_a_call_says_what_it_was_made_of(serial: int, path: str, destination: str, member: str, argument: str) -> None:
    body = marshalled("s", argument)
    raw = make_call(destination, "an.interface", member, "s", body)(serial, path)
    assert message_size(raw[:16])[0] == len(raw)
    call = parse_call(raw)
    assert (call.serial, call.path, call.destination, call.member) == (serial, path, destination, member)
    assert (call.fields[2], call.fields[8], call.body) == ("an.interface", "s", body)


@given(serial=U32, kind=st.sampled_from([2, 3]), text=WORDS)
def test_a_reply_is_known_by_the_call_that_it_answers(serial: int, kind: int, text: str) -> None:
    raw = message(kind, 7, serial, "s", marshalled("s", text))
    size, start = message_size(raw[:16])
    assert (size, reply_serial(raw)) == (len(raw), serial)
    assert Body(raw[start:]).text() == text


@pytest.mark.parametrize("kind", [1, 4, 0, 200])
def test_calls_and_signals_answer_nothing(kind: int) -> None:
    assert reply_serial(message(kind, 7, 5, "", b"")) == 0


@given(st.binary(min_size=16, max_size=200))
def test_no_header_does_worse_than_to_be_refused(raw: bytes) -> None:
    try:
        message_size(raw[:16])
        reply_serial(raw)
    except Malformed:
        return


@given(st.lists(ITEM, max_size=8))
def test_objects_are_read_as_they_were_written(rows: list[tuple]) -> None:
    items = parse_items(marshalled(ITEMS, rows))
    assert [(item.path, item.parent, item.index, item.name, item.role) for item in items] == [
        (row[0][1], row[2][1], row[3], row[6], row[7]) for row in rows
    ]
    assert [item.states for item in items] == [row[9][0] | row[9][1] << 32 for row in rows]
    assert [item.has_text for item in items] == ["org.a11y.atspi.Text" in row[5] for row in rows]
    assert [item.has_action for item in items] == ["org.a11y.atspi.Action" in row[5] for row in rows]


@given(rows=st.lists(ITEM, min_size=1, max_size=3), cut=st.integers(0, 400), noise=st.binary(max_size=30))
def test_damaged_objects_do_no_worse_than_to_be_refused(rows: list[tuple], cut: int, noise: bytes) -> None:
    raw = marshalled(ITEMS, rows)
    for damaged in (raw[:cut] + noise, raw[:cut] + noise + raw[cut:], noise):
        try:
            parse_items(damaged)
        except Malformed:
            continue


def test_objects_beyond_the_limit_are_left_out() -> None:
    row = (("a", "/1"), ("a", "/2"), ("a", "/3"), 0, 0, [], "", 0, "", [0, 0])
    assert len(parse_items(marshalled(ITEMS, [row] * (MAX_ITEMS + 1)))) == MAX_ITEMS


def test_what_is_no_utf_8_is_replaced() -> None:
    assert Body(struct.pack("<I", 3) + b"a\xffb\0").text() == "a\N{REPLACEMENT CHARACTER}b"


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
