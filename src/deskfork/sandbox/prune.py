"""Ending what dead owners left behind."""

from pathlib import Path

from deskfork.core.errors import ConfigError
from deskfork.sandbox.live import sandboxes_dir, take_abandoned
from deskfork.sandbox.providers import docker, qemu


def prune(cache_dir: Path) -> list[str]:
    """Remove processes, containers and files of every sandbox whose owner is dead.

    Returns:
        The ids of the sandboxes that were removed.

    Raises:
        SandboxError: Something could not be removed.
    """
    removed = []
    uses_docker = docker.is_docker_answering()
    for claim in take_abandoned(cache_dir):
        qemu.end_by_name(claim.record.id)
        if uses_docker:
            docker.end_by_name(claim.record.id)
        elif claim.record.provider == "docker":
            raise ConfigError(
                f"sandbox {claim.record.id} was a Docker container, and Docker's daemon does not answer: start it and "
                "prune again"
            )
        claim.release()
        removed.append(claim.record.id)
    if uses_docker:
        # A container without a folder: the cache was deleted under a running machine.
        known = {path.name.lstrip(".") for path in sandboxes_dir(cache_dir).glob("*")}
        for name in docker.container_names(cache_dir):
            if name not in known:
                docker.end_by_name(name)
                removed.append(name)
    return removed
