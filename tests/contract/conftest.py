"""Every provider is held to the same promises: what a test here claims, the fake and both kinds of VM must do."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import PurePosixPath

import pytest

from deskfork.sandbox.base import GUEST_DESKTOP, Sandbox, SandboxProvider


@pytest.fixture(
    scope="session",
    params=[
        "fake",
        pytest.param("qemu", marks=pytest.mark.vm),
        pytest.param("docker", marks=[pytest.mark.vm, pytest.mark.docker]),
    ],
)
def provider(
    request: pytest.FixtureRequest, opened: Callable[[str], AbstractContextManager[SandboxProvider]]
) -> Iterator[SandboxProvider]:
    """A provider whose templates are built."""
    with opened(str(request.param)) as provider:
        yield provider


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
