"""Text of guests and models, made fit for a page: everything in it is seen, and nothing in it is obeyed."""

import re
import unicodedata

_SHOWN_CODES = re.compile(
    # Unicode's control and format characters and separators of lines: they hide, join or reorder what is beside them.
    # Tab and line end stay, and the two joiners, which scripts need.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_NO_TEXT = re.compile("[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_LINE_CHARS = 200


def visible(text: str) -> str:
    """Return `text` with what would be invisible or obeyed replaced by signs for it.

    Control characters, those that reorder text (bidirectional overrides) and those without width become their code in
    brackets, lone surrogates the replacement character; tabs and line ends stay.
    """
    shown = text.replace("\r\n", "\n")
    return _NO_TEXT.sub("\ufffd", _SHOWN_CODES.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", shown))


def one_line(text: str, limit: int = _LINE_CHARS) -> str:
    """Return `text` as one line of at most `limit` characters, visible, without accents piled upon each other."""
    line = " ".join(text[: 4 * limit].split())
    plain = "".join(char for char in visible(line) if not unicodedata.combining(char))
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"
