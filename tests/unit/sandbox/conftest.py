"""What several tests of the sandbox layer need."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def no_docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No Docker daemon answers, whatever runs on this machine."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-docker.sock")
    yield
    gc.collect()
