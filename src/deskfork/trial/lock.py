"""Writes down exactly what a run is made with."""

import hashlib
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import deskfork
from deskfork.records.lock import RunLock, TaskWording, TemplateLock
from deskfork.sandbox.base import TemplateFacts
from deskfork.tasks.schema import Task
from deskfork.trial.policies import script_of
from deskfork.trial.prepare import Preparation

_PACKAGES = (
    "deskfork", "smolagents", "litellm", "openai", "transformers", "torch", "paramiko", "websocket-client", "httpx",
    "docker", "pillow", "pandas", "nbformat", "pydantic", "opentelemetry-sdk",
)  # fmt: skip
_GIT_TIMEOUT_S = 5.0


def make_lock(run_id: str, provider: str, templates: Sequence[TemplateFacts], prepared: Preparation) -> RunLock:
    """Return the lock of a run."""
    commit = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain", "--untracked-files=no") if commit else None
    return RunLock(
        run_id=run_id,
        created_at=datetime.now(UTC),
        provider=provider,
        templates=tuple(
            TemplateLock(
                name=found.name,
                digest=found.digest,
                image_digest=found.image_digest,
                qemu_version=found.qemu_version,
                acceleration=found.acceleration,
            )
            for found in templates
        ),
        tasks={task.id: task_digest(task) for task in prepared.tasks},
        wordings={
            task.id: TaskWording(wording=task.wording, counterpart=task.counterpart)
            for task in prepared.tasks
            if task.wording and task.counterpart
        },
        tags={task.id: task.tags for task in prepared.tasks if task.tags},
        skipped=prepared.skipped,
        agents=tuple(agent.model_dump(mode="json") for agent in prepared.agents),
        scripts=script_digests(prepared),
        packages={name: version for name in _PACKAGES if (version := _version(name))},
        python=platform.python_version(),
        host=f"{platform.system()} {platform.release()} {platform.machine()}",
        commit=commit,
        is_modified=None if changes is None else bool(changes),
    )


def task_digest(task: Task) -> str:
    """Return a hash of all that makes a task what it is, wherever it lies."""
    found = hashlib.sha256(task.model_dump_json(exclude={"root", "solution"}).encode())
    files = [(str(path), task.host_path(path)) for path in sorted(task.host_files())]
    if task.solution is not None:
        files.append(("solution", task.solution))
    for name, place in files:
        found.update(f"\0{name}\0{_file_digest(place)}".encode())
    return f"sha256:{found.hexdigest()}"


def script_digests(prepared: Preparation) -> dict[str, str]:
    """Return the hash of each host file that replies of agents are read from, by its path."""
    agents = {id(plan.agent): plan.agent for plan in prepared.plans}
    scripts = {path for agent in agents.values() if (path := script_of(agent)) is not None}
    return {str(path): f"sha256:{_file_digest(path)}" for path in sorted(scripts)}


def _file_digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    """Ask git about the checkout that this package lies in; None when it is none, or there is no git."""
    checkout = Path(deskfork.__file__).parents[2]
    if not (checkout / ".git").exists():
        return None
    try:
        asked = subprocess.run(
            ["git", "-C", str(checkout), *arguments], capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip()
