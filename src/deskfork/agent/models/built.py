"""A model that is ready to be called, and what it costs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Price:
    """What a model costs, USD a token; cache discounts are not known, so a cost from it is an upper bound."""

    input_usd: float
    output_usd: float

    def cost_usd(self, input_tokens: int, output_tokens: int) -> float:
        """Return the price of that many tokens."""
        return self.input_usd * input_tokens + self.output_usd * output_tokens


@dataclass(frozen=True)
class BuiltModel:
    """A model that is ready to be called."""

    model: Any
    """smolagents' Model."""
    spec: str
    is_remote: bool
    """It is an API: calls take a `timeout`, can fail for a while, and want images as data URLs."""
    takes_images: bool
    price: Price | None = None
    timeout_s: float = 180.0
    """For one call to an API, seconds."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    """JSON: what decides about its answers besides the spec and the messages. Part of the response cache's key."""
    has_more: Callable[[], bool] | None = None
    """Whether a script has anything more to say; None for all models that are no script. A script is never cached."""
