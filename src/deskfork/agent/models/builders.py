"""The models that come with deskfork: APIs by OpenAI's client or by litellm, and weights on this machine.

Tools are offered with `tool_choice="required"`, as smolagents does: a reply without a call is none of an agent that
acts by calls alone. A server that refuses that parameter (some local ones do) fails the first call with its own words.
"""

import functools
import importlib.util
import os
from collections.abc import Callable
from typing import Any

import smolagents
from openai.types import CompletionUsage

from deskfork.agent.models.built import BuiltModel
from deskfork.agent.models.prices import price_of
from deskfork.agent.models.settings import ModelSettings
from deskfork.core.errors import ConfigError, InfraError
from deskfork.transport.bounded_http import SharedTransport, shared_client

_OPENAI_HOST = "api.openai.com"
_ENDPOINTS = ("_BASE_URL", "_API_BASE", "_ENDPOINT")


def openai_model(spec: str, name: str, settings: ModelSettings) -> BuiltModel:
    """Make a model behind OpenAI's API or one like it; `name` is MODEL or MODEL@BASE_URL."""
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
        client_kwargs={"max_retries": 0, "http_client": shared_client()},
        retry=False,
        **_sampling(settings),
    )
    model.retryer = _asked
    price = price_of(model_id) if is_openai else None
    return BuiltModel(model, spec, True, True, price, settings.timeout_s, {"base_url": base_url})


def litellm_model(spec: str, name: str, settings: ModelSettings) -> BuiltModel:
    """Make a model behind any API that litellm knows; `name` is litellm's."""
    _need("litellm", spec)
    # Without it litellm fetches its price table from the network when it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    model = smolagents.LiteLLMModel(model_id=name, retry=False, num_retries=0, max_retries=0, **_sampling(settings))
    model.retryer = _asked
    litellm = model.client
    litellm.suppress_debug_info = True
    # The one is what litellm hands to OpenAI's client, the other what its own clients for all other APIs are made on.
    litellm.client_session = litellm.client_session or shared_client()
    litellm.sync_transport = getattr(litellm, "sync_transport", None) or SharedTransport()
    try:
        litellm.get_llm_provider(name)
    except litellm.BadRequestError as exc:
        raise ConfigError(
            f"model '{spec}': litellm knows no provider for it; name one, as in litellm:anthropic/{name}"
        ) from exc
    missing = litellm.validate_environment(name)["missing_keys"]
    if missing:
        raise ConfigError(f"model '{spec}': set {' and '.join(missing)} in the environment")
    endpoints = {key: value for key, value in sorted(os.environ.items()) if key.endswith(_ENDPOINTS)}
    takes_images = not model.flatten_messages_as_text
    return BuiltModel(model, spec, True, takes_images, price_of(name), settings.timeout_s, {"endpoints": endpoints})


def transformers_model(spec: str, name: str, settings: ModelSettings) -> BuiltModel:
    """Load a model from its weights; `name` is a repository's or a folder's."""
    for package in ("torch", "transformers", "accelerate"):
        _need(package, spec, "; install deskfork[transformers]")
    model = _load_transformers(name, settings.max_tokens or 4096, settings.temperature)
    return BuiltModel(model, spec, False, not model.flatten_messages_as_text)


@functools.cache
def _load_transformers(name: str, max_tokens: int, temperature: float | None) -> Any:
    sampling = {} if temperature is None else {"do_sample": temperature > 0, "temperature": temperature or None}
    try:
        return smolagents.TransformersModel(model_id=name, max_new_tokens=max_tokens, **sampling)
    except (OSError, ValueError, ImportError, RuntimeError) as exc:
        raise InfraError(f"model 'transformers:{name}' could not be loaded: {exc}") from exc


def _asked(call: Callable[..., Any], **arguments: Any) -> Any:
    """Take the place of smolagents' retries, which are ours to make, and see to a reply without token usage.

    smolagents takes such a reply for a broken one. No call takes no input, so 0 is what stands for unknown here; see
    `read_reply`.
    """
    reply = call(**arguments)
    usage = getattr(reply, "usage", None)
    counts = [getattr(usage, f"{side}_tokens", None) for side in ("prompt", "completion")]
    if not all(type(count) is int and count >= 0 for count in counts):
        reply.usage = CompletionUsage(prompt_tokens=0, completion_tokens=0, total_tokens=0)
    return reply


def _sampling(settings: ModelSettings) -> dict[str, Any]:
    options = {"temperature": settings.temperature, "max_tokens": settings.max_tokens}
    return {key: value for key, value in options.items() if value is not None}


def _need(package: str, spec: str, remedy: str = "; install it") -> None:
    if importlib.util.find_spec(package) is None:
        raise ConfigError(f"model '{spec}' needs the Python package {package}, which is not installed{remedy}")
