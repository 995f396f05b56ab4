"""Taking everything out of a final state that its judging needs.

The machine in which the agent worked is asked only for what no other can tell. Files and scripts are read and run in a
fresh machine in which its disk lies: see `SandboxProvider.examine`.
"""

from pathlib import Path

from deskfork.core.errors import InfraError
from deskfork.evaluation.evidence import Evidence, EvidenceIndex, write_evidence
from deskfork.evaluation.getters import Kept, read_active_tab, read_guest_file, read_script_output
from deskfork.sandbox.base import Guest
from deskfork.tasks.checks import ActiveTab, Check, GuestFile, ScriptOutput
from deskfork.tasks.schema import Task


def needs_disk(task: Task) -> bool:
    """Whether a check reads a file or runs a script."""
    return not all(isinstance(check.result, ActiveTab) for check in task.evaluator.checks)


class Collection:
    """What is read of one final state."""

    def __init__(self, task: Task, directory: Path) -> None:
        """Begin to read.

        Args:
            task: Whose evaluator it is.
            directory: Host folder that keeps everything; made if missing.

        Raises:
            InfraError: It cannot be made.
        """
        self.directory = directory
        self._task = task
        self._found: dict[int, Evidence] = {}
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InfraError(f"{directory} for what is read of {task.id} could not be made: {error}") from error

    def ask_live(self, guest: Guest) -> None:
        """Read what only the machine can tell in which the agent worked.

        Raises:
            InfraError: It could not be asked, or the host could not keep what it said.
        """
        self._read(guest, is_live=True)

    def read_disk(self, guest: Guest) -> None:
        """Read files and run scripts in `guest`, in which the machine's disk lies.

        Raises:
            InfraError: It could not be asked, or the host could not keep what it said.
        """
        self._read(guest, is_live=False)

    def lose_disk(self, detail: str) -> None:
        """Note that the agent left no disk on which a file could be looked for."""
        for place, check in enumerate(self._task.evaluator.checks, start=1):
            if not isinstance(check.result, ActiveTab):
                self._found[place] = Kept(place, self.directory).missing("disk", detail)

    def adopt(self, earlier: EvidenceIndex, directory: Path) -> None:
        """Take over what an earlier collection in `directory` has of a machine that is gone.

        Raises:
            InfraError: It could not be copied.
            EvaluationError: It is not what was kept.
        """
        for entry in earlier.evidence:
            if entry.check not in self._found:
                self._found[entry.check] = entry
                if entry.file is not None:
                    self._write(entry.file.name, entry.content(directory))

    def finish(self) -> EvidenceIndex:
        """Write the index of all that was read.

        Raises:
            InfraError: It could not be written.
        """
        found = tuple(self._found[check] for check in sorted(self._found))
        index = EvidenceIndex(task=self._task.id, evidence=found)
        write_evidence(self.directory, index)
        return index

    def _read(self, guest: Guest, *, is_live: bool) -> None:
        for place, check in enumerate(self._task.evaluator.checks, start=1):
            if isinstance(check.result, ActiveTab) is not is_live:
                continue
            try:
                self._found[place] = _evidence(check, guest, self._task.root, Kept(place, self.directory))
            except OSError as error:
                raise InfraError(f"what was read could not be kept in {self.directory}: {error}") from error

    def _write(self, name: str, content: bytes) -> None:
        try:
            (self.directory / name).write_bytes(content)
        except OSError as error:
            raise InfraError(f"{self.directory / name}: could not be written: {error}") from error


def _evidence(check: Check, guest: Guest, root: Path, kept: Kept) -> Evidence:
    match check.result:
        case GuestFile():
            return read_guest_file(check.result, guest, kept)
        case ScriptOutput():
            return read_script_output(check.result, guest, root, kept)
        case ActiveTab():
            return read_active_tab(check.result, guest, kept)
