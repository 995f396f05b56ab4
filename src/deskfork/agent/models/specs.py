"""Any smolagents model from a spec string, checked before a machine is started for it."""

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points

from deskfork.agent.models.builders import litellm_model, openai_model, transformers_model
from deskfork.agent.models.built import BuiltModel
from deskfork.agent.models.scripted import replay_model, scripted_model
from deskfork.agent.models.settings import ModelSettings
from deskfork.agent.registry import Registry
from deskfork.core.errors import ConfigError

GROUP = "deskfork.models"
"""Entry points by which a package adds schemes: a name NAME makes `NAME:rest` a spec. The object is a callable
`(spec, rest, settings) -> BuiltModel`, which raises ConfigError for what it cannot make."""
Builder = Callable[[str, str, ModelSettings], BuiltModel]
_BUILDERS: dict[str, Builder] = {
    "openai": openai_model,
    "litellm": litellm_model,
    "transformers": transformers_model,
    "scripted": scripted_model,
    "replay": replay_model,
}
# What a package's own code may raise; deskfork's errors pass.
_BROKEN = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, OSError, RuntimeError,
    TypeError, ValueError,
)  # fmt: skip
_FORMS = (
    "litellm:MODEL", "openai:MODEL", "openai:MODEL@BASE_URL", "transformers:MODEL", "scripted:FILE", "replay:FILE",
)  # fmt: skip


def build_model(spec: str, settings: ModelSettings) -> BuiltModel:
    """Make the model that `spec` names; an API is not called yet, a local model is loaded, a script is read.

    Raises:
        ConfigError: The spec is not understood, or a package, a key or a file for it is missing or broken.
        InfraError: A local model could not be loaded.
    """
    scheme, colon, name = spec.partition(":")
    registry: Registry[object] = Registry(GROUP, object)
    others = [other for other in registry.names() if other not in _BUILDERS]
    ways = f"give {', '.join([*_FORMS, *(f'{other}:...' for other in others)])}"
    if not colon or scheme not in (*_BUILDERS, *others):
        raise ConfigError(f"unknown model '{spec}': {ways}")
    if not name.strip():
        raise ConfigError(f"model '{spec}' names no model: {ways}")
    for point in entry_points(group=GROUP, name=scheme):
        if scheme in _BUILDERS:
            raise ConfigError(f"{_where(point)} takes the name of a scheme that is deskfork's own: uninstall it")
    build = _BUILDERS[scheme] if scheme in _BUILDERS else _of_package(registry, scheme)
    built = build(spec, name, settings)
    asked = {"temperature": settings.temperature, "max_tokens": settings.max_tokens}
    return replace(built, parameters={**asked, **built.parameters})


def _of_package(registry: Registry[object], scheme: str) -> Builder:
    found = registry.get(scheme)
    where = " and ".join(map(_where, entry_points(group=GROUP, name=scheme)))

    def build(spec: str, name: str, settings: ModelSettings) -> BuiltModel:
        if not callable(found):
            raise ConfigError(f"{where} is not a callable, but {type(found).__name__}")
        try:
            built = found(spec, name, settings)
        except _BROKEN as exc:
            raise ConfigError(f"{where} failed to make model '{spec}': {exc!r}") from exc
        if not isinstance(built, BuiltModel):
            raise ConfigError(f"{where} made no BuiltModel of '{spec}', but {type(built).__name__}")
        return built

    return build


def _where(point: EntryPoint) -> str:
    package = point.dist.name if point.dist else "unknown"
    return f"entry point '{point.name}' of package {package} ({point.value})"
