"""Prices of known models, from the table that litellm ships."""

import functools
import importlib.util
import json
from pathlib import Path
from typing import Any

from deskfork.agent.models.built import Price


def price_of(model_id: str) -> Price | None:
    """Return the model's price; None where the table has none. Importing litellm for it would take seconds."""
    found = _price_table().get(model_id) or _price_table().get(model_id.split("/")[-1])
    if not isinstance(found, dict):
        return None
    prices = [found.get(f"{side}_cost_per_token") for side in ("input", "output")]
    numbers = [float(price) for price in prices if isinstance(price, int | float)]
    return Price(*numbers) if len(numbers) == len(prices) else None


@functools.cache
def _price_table() -> dict[str, Any]:
    package = importlib.util.find_spec("litellm")
    if package is None or package.origin is None:
        return {}
    path = Path(package.origin).with_name("model_prices_and_context_window_backup.json")
    table = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return table if isinstance(table, dict) else {}
