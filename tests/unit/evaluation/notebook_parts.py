"""Builds notebooks for tests, part by part."""

import json
from typing import Any


def printed(text: Any, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def displayed(text: Any, **further: Any) -> dict[str, Any]:
    """What `display` leaves; further MIME types as `text_html`, `image_png`."""
    data = {"text/plain": text, **{name.replace("_", "/"): content for name, content in further.items()}}
    return {"output_type": "display_data", "metadata": {}, "data": data}


def returned(text: Any, count: int, **further: Any) -> dict[str, Any]:
    """What a cell's last expression leaves."""
    return {**displayed(text, **further), "output_type": "execute_result", "execution_count": count}


def failed(name: str = "NameError") -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": "", "traceback": []}


def code(source: Any, *outputs: Any, count: Any = None) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "source": source,
        "metadata": {},
        "execution_count": count,
        "outputs": list(outputs),
    }


def markdown(source: Any = "# Title") -> dict[str, Any]:
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def notebook(*cells: Any, **further: Any) -> bytes:
    document = {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 4, **further}
    return json.dumps(document).encode()
