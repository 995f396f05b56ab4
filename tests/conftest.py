"""How tests get providers of real machines, and what happens where there are none."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import NoReturn

import pytest
from hypothesis import settings

from deskfork.core.config import cache_dir
from deskfork.core.errors import ConfigError
from deskfork.sandbox.base import SandboxProvider
from deskfork.sandbox.open import open_provider

REQUIRED = "DESKFORK_REQUIRED_PROVIDERS"
"""Names, separated by spaces, of providers that must not be skipped; `make test` sets it."""
TEMPLATES = ("desktop", "jupyter")

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("deskfork", deadline=None)
settings.load_profile("deskfork")


def pytest_configure() -> None:
    """Take signals as a terminal's programs do: what is started in the background may have to ignore some."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def opened() -> Callable[[str], AbstractContextManager[SandboxProvider]]:
    """Opens a provider by name; skips what needs it where it cannot work, or its templates are not built."""
    return _opened


@contextmanager
def _opened(name: str) -> Iterator[SandboxProvider]:
    try:
        provider = open_provider(name, cache_dir())
    except ConfigError as error:
        _unusable(name, error)
    with closing(provider):
        try:
            for template in TEMPLATES:
                provider.describe(template)
        except ConfigError as error:
            _unusable(name, error)
        yield provider


def _unusable(name: str, error: ConfigError) -> NoReturn:
    """Skip what needs the provider `name` and say why; fail if it was said to work here."""
    reason = f"provider {name} cannot be used here: {error}"
    if name in os.environ.get(REQUIRED, "").split():
        pytest.fail(reason)
    pytest.skip(reason)
