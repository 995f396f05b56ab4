"""Ending what dead owners left behind."""

from pathlib import Path

from deskfork.core.errors import ConfigError, SandboxError
from deskfork.sandbox.live import SandboxRecord, sandboxes_dir, take_abandoned
from deskfork.sandbox.providers import docker_daemon, qemu
from deskfork.sandbox.templates.store import remove_partial


def prune(cache_dir: Path) -> list[str]:
    """Remove processes, containers and files of every sandbox whose owner is dead, and its half-made templates.

    Returns:
        The ids of the sandboxes that were removed, and the names of the templates' folders.

    Raises:
        ConfigError: Some were containers, and Docker's daemon does not answer; all else is removed.
        SandboxError: Something could not be removed; all else is.
    """
    removed: list[str] = []
    problems: list[ConfigError | SandboxError] = []
    uses_docker = docker_daemon.is_docker_answering()
    for claim in take_abandoned(cache_dir):
        try:
            _end(claim.record, uses_docker=uses_docker)
        except (ConfigError, SandboxError) as error:
            problems.append(error)
            claim.let_go()
            continue
        claim.release()
        removed.append(claim.record.id)
    if uses_docker:
        # A container without a folder: the cache was deleted under a running machine. Asked for before the folders
        # are listed, because a sandbox that is just being made has its folder first.
        names = docker_daemon.container_names(cache_dir)
        known = {path.name.lstrip(".") for path in sandboxes_dir(cache_dir).glob("*")}
        for name in set(names) - known:
            docker_daemon.end_by_name(name)
            removed.append(name)
    removed += remove_partial(cache_dir)
    if problems:
        raise type(problems[0])("; ".join(str(problem) for problem in problems)) from problems[0]
    return removed


def _end(record: SandboxRecord, *, uses_docker: bool) -> None:
    qemu.end_by_name(record.id)
    if uses_docker:
        docker_daemon.end_by_name(record.id)
    elif record.provider == "docker":
        raise ConfigError(
            f"sandbox {record.id} was a Docker container, and Docker's daemon does not answer: start it and prune again"
        )
