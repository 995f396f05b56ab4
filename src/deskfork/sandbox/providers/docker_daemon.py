"""Docker's daemon: finding it, and what it is asked for without a launcher."""

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import docker
import docker.errors
import requests
from docker.utils import kwargs_from_env

from deskfork.core.errors import ConfigError, InfraError, SandboxError

LABEL = "deskfork.sandbox"
CACHE_LABEL = "deskfork.cache"
_CALL_TIMEOUT_S = 60
_ANY_VERSION = "1.41"


def is_docker_answering() -> bool:
    """Whether a Docker daemon answers."""
    try:
        connect().close()
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
    remove(connect(), f"deskfork-{name}", name)


def container_names(cache_dir: Path) -> list[str]:
    """Return the sandbox ids of all containers made by deskfork with this cache, running or not.

    Raises:
        ConfigError: No daemon answers.
    """
    with mapped("listing containers"):
        found = connect().containers(all=True, filters={"label": [LABEL, f"{CACHE_LABEL}={cache_dir}"]})
    return [item["Labels"][LABEL] for item in found]


def connect() -> docker.APIClient:
    """Return a client that speaks the daemon's own version of the API.

    Raises:
        ConfigError: No daemon answers.
    """
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


def remove(api: docker.APIClient, container: str, name: str) -> None:
    """Remove a container of sandbox `name` and wait until it is gone; do nothing if there is none.

    Raises:
        SandboxError: The daemon did not remove it.
    """
    with mapped(f"{name}: removing its container"):
        try:
            api.remove_container(container, force=True, v=True)
        except docker.errors.NotFound:
            return


@contextmanager
def mapped(attempt: str) -> Iterator[None]:
    """Raise what docker raises as a SandboxError that says what was attempted."""
    try:
        yield
    except (docker.errors.DockerException, requests.RequestException) as error:
        reason = getattr(error, "explanation", None) or error
        raise SandboxError(f"{attempt} failed: {reason}") from error
