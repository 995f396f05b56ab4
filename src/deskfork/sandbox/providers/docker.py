"""QEMU in a container, one for each sandbox; the only module that knows Docker."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import docker
import docker.errors
import requests
from docker.utils import kwargs_from_env

from deskfork.core.atomic import write_atomic
from deskfork.core.errors import ConfigError, InfraError, SandboxError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.accel import Acceleration, probe_acceleration, probe_dir
from deskfork.sandbox.images.image import find_qemu_rootfs
from deskfork.sandbox.launcher import MachineProcess
from deskfork.sandbox.machine import GUEST_PORTS
from deskfork.sandbox.providers.qemu import BINARY, checked_version
from deskfork.transport.endpoint import TcpEndpoint

LABEL = "deskfork.sandbox"
CACHE_LABEL = "deskfork.cache"
REPOSITORY = "deskfork-qemu"
_CALL_TIMEOUT_S = 60
_ANY_VERSION = "1.41"


class ContainerProcess:
    """A QEMU in its container."""

    def __init__(self, launcher: "DockerLauncher", container_id: str, name: str) -> None:
        """Look up what the daemon says of a container that was just started."""
        self._launcher = launcher
        self._name = name
        with _mapped(f"{name}: looking at its container"):
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
            with _mapped(f"{self._name}: reading its log"):
                return self._launcher.api.logs(self.container_id, tail=10).decode(errors="replace").strip()[-500:]
        except SandboxError as error:
            return str(error)

    def kill(self) -> None:
        """Remove the container and wait until it is gone."""
        if not self._is_removed:
            _remove(self._launcher.api, self.container_id, self._name)
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
        return _api()

    @cached_property
    def image(self) -> str:
        """The container image's tag.

        Raises:
            ConfigError: It was not built.
        """
        rootfs = find_qemu_rootfs(self._cache_dir, self._recipe)
        tag = f"{REPOSITORY}:{rootfs.key[:16]}"
        with _mapped(f"looking for image {tag}"):
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
        self, name: str, arguments: Sequence[str], *, directory: Path, readable: Sequence[Path], deadline: Deadline
    ) -> MachineProcess:
        """Start a container for one machine.

        Raises:
            SandboxError: The daemon refused, or does not answer.
        """
        del deadline
        uses_kvm = "kvm" in arguments
        with _mapped(f"{name}: starting its container"):
            host = self.api.create_host_config(
                binds=[f"{directory}:{directory}:rw", *(f"{path}:{path}:ro" for path in readable)],
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
                _remove(self.api, created["Id"], name)
                raise


def is_docker_answering() -> bool:
    """Whether a Docker daemon answers."""
    try:
        _api().close()
    except ConfigError:
        return False
    return True


def import_image(api: docker.APIClient, rootfs: Path, tag: str) -> None:
    """Make a container image of a root filesystem's tar.

    Raises:
        InfraError: The daemon did not take it.
    """
    command = ["docker", "import", str(rootfs), tag]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfraError(f"{tag} could not be imported into Docker: {error}") from error
    if done.returncode:
        raise InfraError(f"{tag} could not be imported into Docker: {done.stderr.strip()}")


def end_by_name(name: str) -> None:
    """Remove the container of sandbox `name`, if there is one.

    Raises:
        ConfigError: No daemon answers.
        SandboxError: It could not be removed.
    """
    _remove(_api(), f"deskfork-{name}", name)


def container_names(cache_dir: Path) -> list[str]:
    """Return the sandbox ids of all containers made by deskfork with this cache, running or not.

    Raises:
        ConfigError: No daemon answers.
    """
    with _mapped("listing containers"):
        found = _api().containers(all=True, filters={"label": [LABEL, f"{CACHE_LABEL}={cache_dir}"]})
    return [item["Labels"][LABEL] for item in found]


def _api() -> docker.APIClient:
    try:
        settings = kwargs_from_env()
        # docker-py can negotiate by itself, but leaks its socket when nothing answers.
        with closing(docker.APIClient(**settings, version=_ANY_VERSION, timeout=_CALL_TIMEOUT_S)) as first:
            version = first.version(api_version=False)["ApiVersion"]
        return docker.APIClient(**settings, version=version, timeout=_CALL_TIMEOUT_S)
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise ConfigError(
            "Docker's daemon does not answer: start it (`systemctl start docker`, or `dockerd` as root), "
            "or use --provider qemu"
        ) from error


def _remove(api: docker.APIClient, container: str, name: str) -> None:
    with _mapped(f"{name}: removing its container"):
        try:
            api.remove_container(container, force=True, v=True)
        except docker.errors.NotFound:
            return


@contextmanager
def _mapped(attempt: str) -> Iterator[None]:
    try:
        yield
    except (docker.errors.DockerException, requests.RequestException) as error:
        reason = getattr(error, "explanation", None) or error
        raise SandboxError(f"{attempt} failed: {reason}") from error
