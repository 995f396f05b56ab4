"""Guards against text that hides, reorders or is obeyed: whatever a guest wrote is seen as it is."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.viewer.visible import one_line, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\r\nc", "a\tb\nc"),
        ("\x1b[31mred", "⟨U+001B⟩[31mred"),
        ("\x00\x7f\x9b", "⟨U+0000⟩⟨U+007F⟩⟨U+009B⟩"),
        ("cod\u202egnp.exe", "cod⟨U+202E⟩gnp.exe"),
        ("zero\u200bwidth\ufeff", "zero⟨U+200B⟩width⟨U+FEFF⟩"),
        ("tag\U000e0041", "tag⟨U+E0041⟩"),
        ("half\ud800", "half\ufffd"),
        ("<b>&amp;", "<b>&amp;"),
        ("naïve שלום 👩‍💻", "naïve שלום 👩‍💻"),
    ],
)
def test_what_would_be_obeyed_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_nothing_invisible_is_left(text: str) -> None:
    left = {char for char in visible(text) if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert left <= {"\t", "\n", "\u200c", "\u200d"}
    assert visible(visible(text)) == visible(text)


@given(st.text())
def test_a_line_is_one_and_short(text: str) -> None:
    line = one_line(text, 50)
    assert len(line) <= 50
    assert len(line.splitlines()) <= 1


def test_accents_are_not_piled_up_in_a_line() -> None:
    assert one_line("e" + "\u0301" * 500 + "nd") == "end"
