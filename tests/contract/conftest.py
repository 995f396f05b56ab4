"""Every provider is held to the same promises: what a test here claims, the fake and both kinds of VM must do."""

import os
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import PurePosixPath

import pytest

from deskfork.core.config import cache_dir
from deskfork.core.errors import ConfigError
from deskfork.sandbox.base import GUEST_DESKTOP, Sandbox, SandboxProvider
from deskfork.sandbox.open import open_provider

REQUIRED = "DESKFORK_REQUIRED_PROVIDERS"
"""Names, separated by spaces, of providers that must not be skipped; `make test` sets it."""


@pytest.fixture(
    scope="session",
    params=[
        "fake",
        pytest.param("qemu", marks=pytest.mark.vm),
        pytest.param("docker", marks=[pytest.mark.vm, pytest.mark.docker]),
    ],
)
def provider(request: pytest.FixtureRequest) -> Iterator[SandboxProvider]:
    """A provider whose templates are built."""
    name = str(request.param)
    try:
        opened = open_provider(name, cache_dir())
    except ConfigError as error:
        unusable(name, error)
    with closing(opened):
        try:
            for template in ("desktop", "jupyter"):
                opened.describe(template)
        except ConfigError as error:
            unusable(name, error)
        yield opened


def unusable(name: str, error: ConfigError) -> None:
    """Skip what needs the provider `name` and say why; fail if it was said to work here."""
    reason = f"provider {name} cannot be used here: {error}"
    if name in os.environ.get(REQUIRED, "").split():
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def sandbox(provider: SandboxProvider) -> Iterator[Sandbox]:
    """One running sandbox that all tests of a provider share: leave it alive, and touch only your own names."""
    with provider.fork("desktop") as opened:
        yield opened


@pytest.fixture
def own_sandbox(provider: SandboxProvider) -> Iterator[Sandbox]:
    """A sandbox that the test may destroy."""
    with provider.fork("desktop") as opened:
        yield opened


@pytest.fixture
def place() -> PurePosixPath:
    """A guest path that nothing else uses and that does not exist yet."""
    return GUEST_DESKTOP / f"test-{uuid.uuid4().hex[:8]}"
