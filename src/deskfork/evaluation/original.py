"""What a judged file was before the agent began: some metrics can tell a notebook that was emptied only by it."""

import zipfile
from pathlib import Path, PurePosixPath

from deskfork.evaluation.evidence import MAX_FILE_BYTES
from deskfork.tasks.schema import Task
from deskfork.tasks.steps import CopyStep


def original_file(task: Task, path: PurePosixPath) -> bytes | None:
    """Return what the task's set-up put at the guest path `path`, or None when that is not known.

    A file may have come in an archive that was copied beside it, which a script unpacks there.
    """
    for step in task.setup:
        if not isinstance(step, CopyStep):
            continue
        source = task.host_path(step.source)
        if step.target == path:
            return _bounded(source)
        if step.target.suffix == ".zip" and step.target.parent == path.parent:
            found = _member(source, path.name)
            if found is not None:
                return found
    return None


def _bounded(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.stat().st_size <= MAX_FILE_BYTES else None
    except OSError:
        return None


def _member(archive: Path, name: str) -> bytes | None:
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(name) as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
        return None
    return content if len(content) <= MAX_FILE_BYTES else None
