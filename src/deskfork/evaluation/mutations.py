"""End states that are nearly right: what a strict verdict must refuse, made from one that it accepts."""

import io
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from PIL import Image, ImageOps

from deskfork.core.errors import EvaluationError
from deskfork.tasks.checks import (
    ActiveTab,
    AreJupyterOutputsCleared,
    Check,
    CheckIncludeExclude,
    CompareCsv,
    CompareJupyterlabImages,
    CompareTextFile,
    IsJupyterCellExecuted,
    ScriptOutput,
)

Change = Callable[[bytes], bytes | None]
"""Returns the changed content, or None when there is nothing to change."""


def mutate(check: Check, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield mutations of what an accepted end state gave a check: name and content, always different from `content`.

    Args:
        check: Whose result it is.
        content: What was read: a file, a script's output, or an address.

    Raises:
        EvaluationError: `content` is not of the kind that the check is about.
    """
    try:
        for name, change in _changes(check).items():
            changed = change(content)
            if changed is not None and changed != content:
                yield name, changed
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise EvaluationError(f"the accepted result of {check.metric} cannot be mutated: {error}") from error


def _changes(check: Check) -> dict[str, Change]:
    damage: dict[str, Change] = {"emptied": lambda _: b"", "truncated": lambda content: content[: len(content) // 2]}
    if isinstance(check, CompareJupyterlabImages):
        return {"mirrored": _mirror, "blank": _blank, **damage}
    damage["wrong encoding"] = lambda content: content.decode("utf-8-sig").encode("utf-16")
    if isinstance(check.result, ActiveTab):
        return {"other port": _change_port, "other page": lambda url: url.rpartition(b"/")[0] + b"/", **damage}
    if isinstance(check.result, ScriptOutput):
        return {"emptied": damage["emptied"]}
    if isinstance(check, CompareCsv | CompareTextFile | CheckIncludeExclude):
        return {"value changed": _change_line, "row dropped": _drop_line, "rows reordered": _swap_lines, **damage}
    return {
        "value changed": _notebook(_value_change(check)),
        "cell dropped": _notebook(_drop_cell),
        "cells reordered": _notebook(_swap_cells),
        "empty object": lambda _: b"{}",
        **damage,
    }


def _change_port(url: bytes) -> bytes:
    scheme, _, rest = url.decode().partition("://")
    host, _, path = rest.partition("/")
    name, _, port = host.partition(":")
    return f"{scheme}://{name}:{port or 80}0/{path}".encode()


def _change_line(content: bytes) -> bytes | None:
    lines = content.decode("utf-8-sig").splitlines(keepends=True)
    place = _middle([place for place, line in enumerate(lines) if place and _other(line) != line])
    if place is None:
        return None
    lines[place] = _other(lines[place])
    return "".join(lines).encode()


def _drop_line(content: bytes) -> bytes | None:
    lines = content.decode("utf-8-sig").splitlines(keepends=True)
    place = _middle([place for place, line in enumerate(lines) if place and line.strip()])
    return None if place is None else "".join(lines[:place] + lines[place + 1 :]).encode()


def _swap_lines(content: bytes) -> bytes | None:
    lines = content.decode("utf-8-sig").splitlines()
    swapped = _swap(lines, [place for place, line in enumerate(lines) if place and line.strip()])
    return None if swapped is None else ("\n".join(swapped) + "\n").encode()


def _notebook(change: Callable[[list[dict[str, Any]]], bool]) -> Change:
    def changed(content: bytes) -> bytes | None:
        notebook = json.loads(content)
        return json.dumps(notebook, indent=1).encode() if change(notebook["cells"]) else None

    return changed


def _value_change(check: Check) -> Callable[[list[dict[str, Any]]], bool]:
    if isinstance(check, IsJupyterCellExecuted):
        return _forget_run
    return _print_again if isinstance(check, AreJupyterOutputsCleared) else _change_value


def _change_value(cells: list[dict[str, Any]]) -> bool:
    """Change a letter or digit in the last text output, or in the last source when no cell shows any."""
    places: list[tuple[dict[str, Any], str]] = []
    for cell in cells:
        for output in cell.get("outputs", []):
            if output.get("name") == "stdout":
                places.append((output, "text"))
            elif "text/plain" in output.get("data", {}):
                places.append((output["data"], "text/plain"))
    places = places or [(cell, "source") for cell in cells]
    for holder, key in reversed(places):
        text = _joined(holder[key])
        if _other(text) != text:
            holder[key] = _other(text)
            return True
    return False


def _forget_run(cells: list[dict[str, Any]]) -> bool:
    run = [cell for cell in cells if cell.get("execution_count") is not None]
    if run:
        run[-1].update(execution_count=None, outputs=[])
    return bool(run)


def _print_again(cells: list[dict[str, Any]]) -> bool:
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    if code:
        code[-1]["outputs"] = [{"name": "stdout", "output_type": "stream", "text": ["1\n"]}]
    return bool(code)


def _drop_cell(cells: list[dict[str, Any]]) -> bool:
    place = _middle(_written(cells))
    if place is not None:
        del cells[place]
    return place is not None


def _swap_cells(cells: list[dict[str, Any]]) -> bool:
    swapped = _swap(cells, _written(cells))
    cells[:] = swapped or cells
    return swapped is not None


def _written(cells: list[dict[str, Any]]) -> list[int]:
    return [
        place for place, cell in enumerate(cells) if cell["cell_type"] == "code" and _joined(cell["source"]).strip()
    ]


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _swap(items: list[Any], places: list[int]) -> list[Any] | None:
    """Swap the first two neighbours among `places` that differ."""
    for first, second in pairwise(places):
        if items[first] != items[second]:
            swapped = list(items)
            swapped[first], swapped[second] = items[second], items[first]
            return swapped
    return None


def _middle(places: list[int]) -> int | None:
    return places[len(places) // 2] if places else None


def _other(text: str) -> str:
    """Return `text` with its first digit, else its first letter, changed."""
    place = next((at for at, sign in enumerate(text) if sign in "0123456789"), None)
    if place is None:
        place = next((at for at, sign in enumerate(text) if sign.isascii() and sign.isalpha()), None)
    if place is None:
        return text
    return f"{text[:place]}{'7' if text[place] != '7' else '3'}{text[place + 1 :]}"


def _mirror(content: bytes) -> bytes:
    return _encoded(ImageOps.mirror(_decoded(content)))


def _blank(content: bytes) -> bytes:
    return _encoded(Image.new("RGB", _decoded(content).size, "white"))


def _decoded(content: bytes) -> Image.Image:
    with Image.open(io.BytesIO(content)) as opened:
        return opened.convert("RGB")


def _encoded(picture: Image.Image) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return stream.getvalue()
