"""Guards the choice of a provider: what cannot work here is refused with the name and the way out."""

from contextlib import closing
from pathlib import Path

import pytest

from deskfork.core.errors import ConfigError
from deskfork.sandbox.open import bench_providers, open_provider, open_vm_provider

pytestmark = [
    pytest.mark.usefixtures("no_docker"),
    # docker-py leaks its socket when nothing answers.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.fixture
def no_qemu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No program is installed."""
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))


@pytest.mark.parametrize("name", ["", "kvm", "Docker", "fake "])
def test_an_unknown_provider_is_refused_with_those_that_there_are(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="auto, docker, qemu, fake") as refused:
        open_provider(name, tmp_path)
    assert repr(name) in str(refused.value)


def test_the_fake_needs_nothing(tmp_path: Path, no_qemu: None) -> None:
    with closing(open_provider("fake", tmp_path)) as opened:
        assert opened.name == "fake"
    assert list(tmp_path.iterdir()) == []


def test_the_fake_is_no_provider_of_machines(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="fake"):
        open_vm_provider("fake", tmp_path)


@pytest.mark.parametrize("name", ["qemu", "auto"])
def test_without_qemu_its_package_is_named(tmp_path: Path, no_qemu: None, name: str) -> None:
    with pytest.raises(ConfigError, match="qemu-system-x86"):
        open_provider(name, tmp_path)


def test_without_a_daemon_docker_is_refused_and_qemu_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Docker's daemon does not answer.*--provider qemu|image.*not built"):
        open_provider("docker", tmp_path)


def test_without_a_daemon_auto_is_qemu(tmp_path: Path) -> None:
    with closing(open_provider("auto", tmp_path)) as opened:
        assert opened.name == "qemu"
    assert bench_providers("auto") == ["qemu"]
    assert bench_providers("docker") == ["docker"]


def test_an_empty_cache_has_no_image_and_says_how_to_get_one(tmp_path: Path) -> None:
    with closing(open_provider("qemu", tmp_path)) as opened:
        for refused in (opened.describe, opened.fork):
            with pytest.raises(ConfigError, match="deskfork image build"):
                refused("desktop")
            with pytest.raises(ConfigError, match="no-such"):
                refused("no-such")
    assert not (tmp_path / "sandboxes").exists()
