"""What a person sees below a code cell, and whether two such views are the same."""

import html
import re
from base64 import b64decode
from dataclasses import dataclass

from deskfork.evaluation.metrics.approximate import differing_lines
from deskfork.evaluation.metrics.images import is_blank_picture
from deskfork.evaluation.metrics.judged import shown
from deskfork.evaluation.metrics.notebooks.reading import PIP_TEXTS, Cell, Output

_PIP_LINES = re.compile(
    r"(?:Requirement already satisfied|Collecting|Installing collected packages|Successfully (?:un)?installed|"
    r"Successfully built|Looking in |Found existing installation|Attempting uninstall|Building wheels? |"
    r"Note: you may need to restart the kernel|\[notice\]|Defaulting to user installation|Created wheel for|"
    r"Stored in directory|(?:Downloading|Using cached|Preparing metadata|Installing build dependencies|"
    r"Getting requirements to build) ?)"
)
_PROGRESS = re.compile(r"[-/\\|━╸╺ ]*\d+(?:\.\d+)?/\d+(?:\.\d+)? [kMG]?i?B")


@dataclass(frozen=True)
class View:
    """One thing below a cell: a run of printed text, or something displayed."""

    kind: str
    text: str
    markup: str = ""
    pictures: tuple[tuple[str, str], ...] = ()


def views(cell: Cell) -> list[View]:
    """List what is seen below a cell: text that follows on text is one, stderr and lines of pip's are none."""
    found: list[View] = []
    for output in cell.outputs:
        if output.kind == "error":
            found.append(View("error", f"{output.name}: {output.text}"))
        elif output.kind != "stream":
            found.append(_displayed(output))
        elif output.name != "stderr" and (text := _without_pip(output.text)):
            if found and found[-1].kind == "printed":
                text = found.pop().text + text
            found.append(View("printed", text))
    return [view for view in found if view.kind != "printed" or view.text.strip()]


def difference(cell: Cell, gold: Cell) -> str:
    """Say what is seen otherwise below `cell` than below `gold`; empty if nothing is."""
    found, wanted = views(cell), views(gold)
    for view, other in zip(found, wanted, strict=False):
        if said := _difference(view, other):
            return said
    if len(found) > len(wanted):
        return f"shows {shown(found[len(wanted)].text)} too much"
    if len(found) < len(wanted):
        return f"does not show {shown(wanted[len(found)].text)}"
    return ""


def _difference(view: View, gold: View) -> str:
    if view.kind != gold.kind:
        return f"has something {view.kind} ({shown(view.text)}), expected {shown(gold.text)}"
    lines = differing_lines(view.text, gold.text)
    if lines is None and view.markup and gold.markup:
        lines = differing_lines(_text_of(view.markup), _text_of(gold.markup))
    if lines is not None:
        return f"shows {shown(lines[0])}, expected {shown(lines[1])}"
    for mime, content in gold.pictures:
        pictures = dict(view.pictures)
        if mime not in pictures:
            return f"shows no {mime}"
        if _is_blank(mime, pictures[mime]) and not _is_blank(mime, content):
            return f"shows an {mime} with nothing in it"
    return ""


def _displayed(output: Output) -> View:
    pictures = tuple((mime, content) for mime, content in output.data.items() if mime.startswith("image/"))
    return View("displayed", output.data.get("text/plain", ""), output.data.get("text/html", ""), pictures)


def _is_blank(mime: str, content: str) -> bool:
    if mime != "image/png":
        return not content.strip()
    try:
        return is_blank_picture(b64decode(content))
    except ValueError:
        return True


def _without_pip(text: str) -> str:
    if not any(said in text for said in PIP_TEXTS):
        return text
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not (_PIP_LINES.match(line.strip()) or _PROGRESS.match(line)))


def _text_of(markup: str) -> str:
    """Return the words of HTML, one to a line, without styles and scripts."""
    words: list[str] = []
    hidden = ""
    for piece in markup.split("<"):
        tag, _, text = piece.rpartition(">")
        name = tag.split(maxsplit=1)[0].lower() if tag.strip() else ""
        if hidden:
            hidden = "" if name == f"/{hidden}" else hidden
        elif name in ("style", "script"):
            hidden = name
        if not hidden:
            words.extend(html.unescape(text).split())
    return "\n".join(words)
