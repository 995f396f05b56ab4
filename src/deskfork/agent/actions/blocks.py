"""Spider2-V's PyAutoGUI space: fenced Python, and the words WAIT, FAIL and DONE in fences of their own.

Source: xlang-ai/Spider2-V, `mm_agents/agent.py` `parse_code_from_string`: every fence is a block, and a word that is
the last line of a block is an act after it. Upstream also breaks the reply at every `;`, strings included; here only a
word may stand behind one.
"""

import re

from deskfork.agent.actions.acts import Done, Fail, Wait
from deskfork.agent.actions.refusal import Refused

MAX_BLOCKS = 20
_FORM = "put Python into a block fenced with ```python, or WAIT, FAIL or DONE into a fence of its own"
_OPENING = re.compile(r"```(?:[ \t]*([A-Za-z0-9_+-]+)[ \t]*(?=\n)|[ \t]*(python3?|py)[ \t]+)?", re.IGNORECASE)
# Code may type a fence: what comes right before a quote, a backslash or a word closes nothing.
_CLOSING = re.compile(r"```(?![\w'\"\\)])")
_LAST_WORD = re.compile(r"(?:\A|\n|;)[ \t]*(WAIT|FAIL|DONE)[ \t]*;?\Z")
_PYTHON = frozenset({"", "python", "python3", "py"})
Block = str | Wait | Done | Fail


def parse_pyautogui(reply: str) -> list[Block]:
    """Return the blocks of a model's reply in order; code as it is, nothing about it is checked yet.

    Raises:
        Refused: There is no block, one is not closed or not Python, or something follows DONE or FAIL.
    """
    text = reply.replace("\r\n", "\n").strip()
    if text in _WORDS:
        return [_WORDS[text]()]
    blocks: list[Block] = []
    position = 0
    while (opening := _OPENING.search(text, position)) is not None:
        code, position = _content(text, opening)
        blocks += _split(code)
    if not blocks:
        raise Refused(f"no action: {_FORM}")
    if len(blocks) > MAX_BLOCKS:
        raise Refused(f"{len(blocks)} blocks in one reply: give at most {MAX_BLOCKS}")
    if any(isinstance(block, Done | Fail) for block in blocks[:-1]):
        raise Refused("nothing may follow DONE or FAIL in a reply: put it last or leave it out")
    return blocks


def _content(text: str, opening: re.Match[str]) -> tuple[str, int]:
    """Return what a fence holds and where it ends."""
    language = opening[1] or opening[2] or ""
    start = opening.end()
    if language in _WORDS:
        language, start = "", opening.start(1)
    if language.lower() not in _PYTHON:
        raise Refused(f"a block marked {language[:40]!r} is not Python: {_FORM}")
    closing = _CLOSING.search(text, start)
    end = closing.start() if closing else text.find("```", start)
    if end < 0:
        raise Refused("a block is not closed: end it with ``` on a line of its own")
    return text[start:end], end + 3


def _split(content: str) -> list[Block]:
    code = _dedented(content).strip()
    word = _LAST_WORD.search(code)
    if word is None:
        return [code] if code else []
    before = code[: word.start()].rstrip()
    return [*([before] if before else []), _WORDS[word[1]]()]


def _dedented(content: str) -> str:
    """Take the first line's indentation from all lines; textwrap's dedent would also change blank rows of strings."""
    lines = content.lstrip("\n").split("\n")
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    if not all(line.startswith(indent) for line in lines if line.strip()):
        return content
    return "\n".join(line.removeprefix(indent) for line in lines)


_WORDS: dict[str, type[Wait] | type[Done] | type[Fail]] = {"WAIT": Wait, "DONE": Done, "FAIL": Fail}
