"""Any smolagents model from a spec string, checked before a machine is started for it."""

import functools
import importlib.util
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import smolagents

from deskfork.core.errors import ConfigError, InfraError

_FORMS = "give litellm:MODEL, openai:MODEL, openai:MODEL@BASE_URL or transformers:MODEL"
_OPENAI_HOST = "api.openai.com"


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


def build_model(
    spec: str, *, timeout_s: float = 180.0, temperature: float | None = None, max_tokens: int | None = None
) -> BuiltModel:
    """Make the model that `spec` names; an API is not called yet, a local model is loaded.

    Raises:
        ConfigError: The spec is not understood, or a package or a key for it is missing.
        InfraError: A local model could not be loaded.
    """
    scheme, colon, name = spec.partition(":")
    if not colon or scheme not in _BUILDERS:
        raise ConfigError(f"unknown model '{spec}': {_FORMS}")
    if not name.strip():
        raise ConfigError(f"model '{spec}' names no model: {_FORMS}")
    options = {"temperature": temperature, "max_tokens": max_tokens}
    return _BUILDERS[scheme](spec, name, timeout_s, {key: value for key, value in options.items() if value is not None})


def _openai(spec: str, name: str, timeout_s: float, options: dict[str, Any]) -> BuiltModel:
    _need("openai", spec)
    model_id, _, base_url = name.partition("@")
    base_url = base_url or os.environ.get("OPENAI_BASE_URL", "")
    key = os.environ.get("OPENAI_API_KEY")
    if base_url and not base_url.startswith(("http://", "https://")):
        raise ConfigError(f"model '{spec}': the base URL '{base_url}' must start with http:// or https://")
    is_openai = not base_url or _OPENAI_HOST in base_url
    if not key and is_openai:
        raise ConfigError(
            f"model '{spec}': set OPENAI_API_KEY, or name a server that needs no key: openai:MODEL@BASE_URL"
        )
    model = smolagents.OpenAIModel(
        model_id=model_id,
        api_base=base_url or None,
        api_key=key or "none",  # the client refuses to start without one, servers without keys ignore it
        client_kwargs={"max_retries": 0},
        retry=False,
        **options,
    )
    return BuiltModel(model, spec, True, True, _price(model_id) if is_openai else None, timeout_s)


def _litellm(spec: str, name: str, timeout_s: float, options: dict[str, Any]) -> BuiltModel:
    _need("litellm", spec)
    # Without it litellm fetches its price table from the network when it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    model = smolagents.LiteLLMModel(model_id=name, retry=False, num_retries=0, max_retries=0, **options)
    model.client.suppress_debug_info = True
    try:
        model.client.get_llm_provider(name)
    except model.client.BadRequestError as exc:
        raise ConfigError(
            f"model '{spec}': litellm knows no provider for it; name one, as in litellm:anthropic/{name}"
        ) from exc
    missing = model.client.validate_environment(name)["missing_keys"]
    if missing:
        raise ConfigError(f"model '{spec}': set {' and '.join(missing)} in the environment")
    return BuiltModel(model, spec, True, not model.flatten_messages_as_text, _price(name), timeout_s)


def _transformers(spec: str, name: str, timeout_s: float, options: dict[str, Any]) -> BuiltModel:
    for package in ("torch", "transformers", "accelerate"):
        _need(package, spec, "; install deskfork[transformers]")
    model = _load_transformers(name, options.get("max_tokens", 4096), options.get("temperature"))
    return BuiltModel(model, spec, False, not model.flatten_messages_as_text)


@functools.cache
def _load_transformers(name: str, max_tokens: int, temperature: float | None) -> Any:
    sampling = {} if temperature is None else {"do_sample": temperature > 0, "temperature": temperature or None}
    try:
        return smolagents.TransformersModel(model_id=name, max_new_tokens=max_tokens, **sampling)
    except (OSError, ValueError, ImportError, RuntimeError) as exc:
        raise InfraError(f"model 'transformers:{name}' could not be loaded: {exc}") from exc


_BUILDERS = {"openai": _openai, "litellm": _litellm, "transformers": _transformers}


def _need(package: str, spec: str, remedy: str = "; install it") -> None:
    if importlib.util.find_spec(package) is None:
        raise ConfigError(f"model '{spec}' needs the Python package {package}, which is not installed{remedy}")


def _price(model_id: str) -> Price | None:
    """Look the model up in the price table that litellm ships; importing litellm for it would take seconds."""
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
