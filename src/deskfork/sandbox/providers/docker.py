"""QEMU in a container, one for each sandbox; with docker_daemon.py the only module that knows Docker."""

import os
import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import docker
import docker.types

from deskfork.core.atomic import write_atomic
from deskfork.core.errors import SandboxError
from deskfork.sandbox.accel import Acceleration, probe_acceleration, probe_dir
from deskfork.sandbox.images.image import find_qemu_rootfs
from deskfork.sandbox.launcher import MachineProcess
from deskfork.sandbox.machine import GUEST_PORTS
from deskfork.sandbox.providers.docker_daemon import CACHE_LABEL, LABEL, connect, import_image, mapped, remove
from deskfork.sandbox.providers.qemu import BINARY, checked_version
from deskfork.transport.endpoint import TcpEndpoint

REPOSITORY = "deskfork-qemu"


class ContainerProcess:
    """A QEMU in its container."""

    def __init__(self, launcher: "DockerLauncher", container_id: str, name: str) -> None:
        """Look up what the daemon says of a container that was just started."""
        self._launcher = launcher
        self._name = name
        with mapped(f"{name}: looking at its container"):
            facts = launcher.api.inspect_container(container_id)
        self.container_id = container_id
        self.pid = int(facts["State"]["Pid"])
        self._ports: dict[str, Any] = facts["NetworkSettings"]["Ports"] or {}
        self._is_removed = False

    def is_alive(self) -> bool:
        """Whether QEMU still runs; asked of the kernel, which is quicker than the daemon."""
        return self.pid > 0 and Path(f"/proc/{self.pid}").is_dir()

    def endpoints(self, forwards: str) -> dict[str, TcpEndpoint]:
        """Return the loopback ports that the daemon published.

        Raises:
            SandboxError: A service is not published on loopback.
        """
        del forwards
        found = {}
        for service, port in GUEST_PORTS.items():
            published = self._ports.get(f"{port}/tcp") or []
            if not published or published[0]["HostIp"] != "127.0.0.1":
                raise SandboxError(f"{self._name}: Docker did not publish {service} on 127.0.0.1 (got {published})")
            found[service] = TcpEndpoint("127.0.0.1", int(published[0]["HostPort"]))
        return found

    def complaint(self) -> str:
        """Return the end of what QEMU wrote."""
        try:
            with mapped(f"{self._name}: reading its log"):
                return self._launcher.api.logs(self.container_id, tail=10).decode(errors="replace").strip()[-500:]
        except SandboxError as error:
            return str(error)

    def kill(self) -> None:
        """Remove the container and wait until it is gone."""
        if not self._is_removed:
            remove(self._launcher.api, self.container_id, self._name)
            self._is_removed = True


class DockerLauncher:
    """Starts QEMU in containers of our own image: no capabilities, read-only root, loopback ports only."""

    name: Literal["docker"] = "docker"

    def __init__(self, cache_dir: Path, qemu_recipe: Path) -> None:
        """Remember where verdicts are cached, and what the container image is built from.

        Args:
            cache_dir: deskfork's cache.
            qemu_recipe: sandbox_images/qemu.
        """
        self._cache_dir = cache_dir
        self._recipe = qemu_recipe

    @cached_property
    def api(self) -> docker.APIClient:
        """The daemon's API.

        Raises:
            ConfigError: No daemon answers.
        """
        return connect()

    @cached_property
    def image(self) -> str:
        """The container image's tag.

        Raises:
            ConfigError: It was not built.
        """
        rootfs = find_qemu_rootfs(self._cache_dir, self._recipe)
        tag = f"{REPOSITORY}:{rootfs.key[:16]}"
        with mapped(f"looking for image {tag}"):
            if not self.api.images(tag):
                import_image(self.api, rootfs.path, tag)
        return tag

    @cached_property
    def _version(self) -> str:
        note = self._cache_dir / "qemu-versions" / self.image.replace(":", "-")
        if note.is_file():
            return note.read_text()
        command = ["docker", "run", "--rm", "--network", "none", self.image, BINARY, "--version"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SandboxError(f"QEMU's version in {self.image} could not be asked: {error}") from error
        version = checked_version(done.stdout)
        note.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(note, version)
        return version

    def qemu_version(self) -> str:
        """Return the version of QEMU in the container image."""
        return self._version

    def acceleration(self) -> Acceleration:
        """Return KVM if a guest was shown to run under it in a container, else TCG, and why."""
        probe = probe_dir(self._cache_dir)
        probe.mkdir(parents=True, exist_ok=True)
        prefix = ["docker", "run", "--rm", "--network", "none", "-v", f"{probe}:{probe}:ro", "--device", "/dev/kvm"]
        # A container does not end with the client that started it.
        prefix += [self.image, "timeout", "-s", "KILL", "30", BINARY]
        return probe_acceleration(prefix, self._cache_dir, qemu_version=self.qemu_version())

    def forwards(self) -> tuple[tuple[str, int, int], ...]:
        """Forward inside the container; the daemon publishes these ports on the host's loopback."""
        return tuple(("", port, port) for port in GUEST_PORTS.values())

    def start(
        self, name: str, arguments: Sequence[str], *, directory: Path, readable: Sequence[Path]
    ) -> MachineProcess:
        """Start a container for one machine.

        Raises:
            SandboxError: The daemon refused, or does not answer.
        """
        uses_kvm = "kvm" in arguments
        with mapped(f"{name}: starting its container"):
            host = self.api.create_host_config(
                mounts=[_mount(directory, read_only=False), *(_mount(path) for path in dict.fromkeys(readable))],
                port_bindings={port: ("127.0.0.1",) for port in GUEST_PORTS.values()},
                devices=["/dev/kvm:/dev/kvm:rw"] if uses_kvm else [],
                group_add=[str(Path("/dev/kvm").stat().st_gid)] if uses_kvm else [],
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                read_only=True,
                tmpfs={"/tmp": "size=16m", "/var/tmp": "size=16m"},
                pids_limit=256,
            )
            created = self.api.create_container(
                self.image,
                [BINARY, "-name", f"deskfork-{name}", *arguments],
                name=f"deskfork-{name}",
                user=f"{os.getuid()}:{os.getgid()}",
                ports=list(GUEST_PORTS.values()),
                labels={LABEL: name, CACHE_LABEL: str(self._cache_dir)},
                host_config=host,
            )
            try:
                self.api.start(created["Id"])
                return ContainerProcess(self, created["Id"], name)
            except BaseException:
                remove(self.api, created["Id"], name)
                raise


def _mount(path: Path, *, read_only: bool = True) -> docker.types.Mount:
    """Show a host folder at its own path; unlike the short form, this takes a path with a colon."""
    return docker.types.Mount(str(path), str(path), type="bind", read_only=read_only)
