"""What two texts that programs printed may differ in without meaning anything else."""

import math
import re

_FLOAT = re.compile(r"((?<![\w.])[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?!\w))")
_ADDRESS = re.compile(r"\bat 0x[0-9A-Fa-f]+")
_BLANKS = re.compile(r"[ \t]+")
# From this many digits on, the last ones depend on the order in which a sum was made.
_NOISY_DIGITS = 12
_RELATIVE_NOISE = 1e-9
_ABSOLUTE_NOISE = 1e-12


def is_same_number(found: str, wanted: str) -> bool:
    """Tell whether two written numbers are equal up to the noise of floating point arithmetic.

    Numbers written with few digits must be written alike: their last digit is no noise.

    Args:
        found: A number with a fraction or an exponent, or any other text.
        wanted: The same, of the gold file.
    """
    if found == wanted:
        return True
    if not (_FLOAT.fullmatch(found) and _FLOAT.fullmatch(wanted)):
        return False
    one, other = float(found), float(wanted)
    if abs(one) < _ABSOLUTE_NOISE and abs(other) < _ABSOLUTE_NOISE:
        return True
    if max(_digits(found), _digits(wanted)) < _NOISY_DIGITS:
        return False
    return math.isclose(one, other, rel_tol=_RELATIVE_NOISE)


def differing_lines(found: str, wanted: str) -> tuple[str, str] | None:
    """Find the first line in which two printed texts differ.

    Not a difference: the width of blanks, blank lines at the end, kinds of line ends, addresses in memory, and noise in
    the last digits of numbers.

    Args:
        found: What was printed.
        wanted: What should have been.

    Returns:
        The two lines, empty where one text has ended; None if the texts are alike.
    """
    if found == wanted:
        return None
    lines, others = _lines(found), _lines(wanted)
    for line, other in zip(lines, others, strict=False):
        if line != other and not _is_same_line(line, other):
            return line, other
    if len(lines) == len(others):
        return None
    shorter = min(len(lines), len(others))
    return "\n".join(lines[shorter : shorter + 1]), "\n".join(others[shorter : shorter + 1])


def _is_same_line(line: str, other: str) -> bool:
    pieces, others = (_FLOAT.split(_ADDRESS.sub("at 0x", _BLANKS.sub(" ", text).strip())) for text in (line, other))
    if len(pieces) != len(others):
        return False
    # Every second piece is a number, the others are what stands between. A sign that came or went moves a blank.
    numbers = all(map(is_same_number, pieces[1::2], others[1::2]))
    return numbers and all(one.split() == two.split() for one, two in zip(pieces[::2], others[::2], strict=True))


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.replace("\r\n", "\n").rstrip().split("\n")]


def _digits(number: str) -> int:
    mantissa = re.split("[eE]", number)[0]
    return len(re.sub(r"\D", "", mantissa).lstrip("0"))
