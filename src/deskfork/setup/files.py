"""Host files on their way into the guest: as few transfers as possible, all writable by the guest's user."""

import os
import shutil
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from deskfork.core.errors import InfraError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.base import Guest

_FILE_MODE = 0o644
_FOLDER_MODE = 0o755


class FileBatch(AbstractContextManager["FileBatch"]):
    """Collects host files until they are needed in the guest, then sends them in one transfer per common folder.

    Each transfer under TCG costs a session and a process in the guest, whatever its size. Files are staged because the
    modes of a read-only checkout must not reach the guest: there, the agent has to edit them.
    """

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._files: dict[PurePosixPath, Path] = {}
        self._staging = TemporaryDirectory(prefix="deskfork-setup-")

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove what was staged."""
        self._staging.cleanup()

    def add(self, source: Path, target: PurePosixPath) -> None:
        """Have `source` at the guest path `target` after the next `flush`."""
        self._files[target] = source

    def flush(self, deadline: Deadline) -> None:
        """Send what was added since the last flush.

        Raises:
            InfraError: A file could not be read or sent.
        """
        if not self._files:
            return
        files, self._files = self._files, {}
        base = _common_folder(list(files))
        tree = Path(self._staging.name) / str(len(list(Path(self._staging.name).iterdir())))
        try:
            tree.mkdir()
            for target, source in files.items():
                staged = tree / target.relative_to(base)
                staged.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, staged)
                staged.chmod(_FILE_MODE)
            for folder, _, _ in os.walk(tree):
                Path(folder).chmod(_FOLDER_MODE)
        except OSError as error:
            raise InfraError(f"files for the guest could not be staged: {error}") from error
        single = next(iter(files)) if len(files) == 1 else None
        if single is not None:
            self._guest.put(tree / single.name, single, timeout_s=max(1.0, deadline.remaining_s))
        else:
            self._guest.put(tree, base, timeout_s=max(1.0, deadline.remaining_s))


def _common_folder(targets: list[PurePosixPath]) -> PurePosixPath:
    return PurePosixPath(os.path.commonpath([str(target.parent) for target in targets]))
