"""Choosing a provider by name."""

from pathlib import Path
from typing import Literal, get_args

from deskfork.core.errors import ConfigError
from deskfork.sandbox.base import SandboxProvider
from deskfork.sandbox.fake.provider import FakeProvider
from deskfork.sandbox.images.recipes import recipe_dir
from deskfork.sandbox.launcher import Launcher
from deskfork.sandbox.provider import VmProvider
from deskfork.sandbox.providers.docker import DockerLauncher
from deskfork.sandbox.providers.docker_daemon import is_docker_answering
from deskfork.sandbox.providers.qemu import QemuLauncher

ProviderName = Literal["auto", "docker", "qemu", "fake"]


def open_provider(name: str, cache_dir: Path) -> SandboxProvider:
    """Open the provider of that name; `auto` is docker when its daemon answers, else qemu.

    Raises:
        ConfigError: There is no such provider, or it cannot work here.
    """
    if name == "fake":
        return FakeProvider()
    return open_vm_provider(name, cache_dir)


def open_vm_provider(name: str, cache_dir: Path, *, is_holding: bool = False) -> VmProvider:
    """Open a provider of real machines; see `open_provider`.

    Raises:
        ConfigError: There is no such provider, or it cannot work here.
    """
    return VmProvider(choose_launcher(name, cache_dir), cache_dir, recipe_dir("guest"), is_holding=is_holding)


def choose_launcher(name: str, cache_dir: Path) -> Launcher:
    """Return the launcher of the provider `name`.

    Raises:
        ConfigError: There is no such provider, or its daemon or program is missing.
    """
    if name not in get_args(ProviderName):
        raise ConfigError(f"no provider {name!r} (known: {', '.join(get_args(ProviderName))})")
    if name == "fake":
        raise ConfigError("the provider fake has no machines: name docker or qemu")
    if name == "auto":
        name = "docker" if is_docker_answering() else "qemu"
    is_docker = name == "docker"
    launcher: Launcher = DockerLauncher(cache_dir, recipe_dir("qemu")) if is_docker else QemuLauncher(cache_dir)
    launcher.qemu_version()
    return launcher


def bench_providers(name: str) -> list[str]:
    """Return the providers of real machines that `name` stands for: with `auto`, all that work here."""
    if name != "auto":
        return [name]
    return ["docker", "qemu"] if is_docker_answering() else ["qemu"]
