"""One running QEMU with its control socket: start, freeze into a folder, end."""

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from deskfork.core.errors import HostDiskFull, SandboxError, TransportError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.frozen.frozen import Frozen
from deskfork.sandbox.launcher import Launcher, MachineProcess
from deskfork.sandbox.machine import MachineFiles, MachineSpec, Start, qemu_arguments, require_usable_path
from deskfork.transport.endpoint import TcpEndpoint
from deskfork.transport.qmp import QmpClient

_IGNORE_SHARED = "x-ignore-shared"
_MAPPED_RAM = "mapped-ram"


@dataclass
class RunningMachine:
    """A QEMU process, its QMP connection, and where its guest's services are reached."""

    name: str
    process: MachineProcess
    qmp: QmpClient
    endpoints: dict[str, TcpEndpoint]
    files: MachineFiles

    @classmethod
    def start(
        cls,
        name: str,
        launcher: Launcher,
        spec: MachineSpec,
        files: MachineFiles,
        start: Start,
        *,
        readable: list[Path],
        deadline: Deadline,
    ) -> Self:
        """Start QEMU and wait until it takes orders.

        Raises:
            SandboxError: QEMU did not start, or ended at once.
            ConfigError: The machine's folder has a path that sockets or options cannot have.
        """
        require_usable_path(files.qmp_socket)
        process = launcher.start(name, qemu_arguments(spec, files, start), directory=files.directory, readable=readable)
        qmp = QmpClient(files.qmp_socket)
        try:
            listening = wait_until(
                lambda: files.qmp_socket.exists() or not process.is_alive(), deadline, interval_s=0.002
            )
            if not listening or not process.is_alive():
                how = "ended while starting" if listening else f"opened no socket in {deadline.timeout_s:.0f} s"
                raise SandboxError(f"{name}: QEMU {how}: {process.complaint()}")
            qmp.connect(Deadline.after(min(5.0, deadline.remaining_s)))
            if start.incoming is not None:
                is_mapped = start.is_mapped_ram
                qmp.migrate_incoming(start.incoming, [(_IGNORE_SHARED, not is_mapped), (_MAPPED_RAM, is_mapped)])
                # The state says that the guest was stopped, so QEMU leaves it so.
                qmp.wait_migrated(deadline)
                qmp.cont()
            endpoints = process.endpoints(qmp.human("info usernet")) if start.forwards else {}
        except BaseException as error:
            process.kill()
            qmp.close()
            if isinstance(error, TransportError):
                raise SandboxError(f"{name}: QEMU ended while starting: {process.complaint() or error}") from error
            raise
        return cls(name, process, qmp, endpoints, files)

    def trouble(self) -> str:
        """Return what keeps the machine from answering, as far as QEMU knows; empty when nothing does.

        Raises:
            HostDiskFull: QEMU stopped the guest because its disk could not be written.
        """
        if not self.process.is_alive():
            return f"QEMU ended: {self.process.complaint() or 'it said nothing'}"
        try:
            status = self.qmp.status()
        except TransportError as error:
            return str(error)
        if status == "io-error":
            raise HostDiskFull(
                f"{self.name}: QEMU stopped the guest because {self.files.disk} could not be written: "
                "free some space on that disk, or set DESKFORK_CACHE to a folder on another"
            )
        return ""

    def close(self) -> None:
        """End QEMU; calling it again does nothing."""
        self.process.kill()
        self.qmp.close()

    def quit(self, deadline: Deadline) -> None:
        """Let QEMU write its disk out and end by itself.

        Raises:
            SandboxError: It did not end in time (it is killed then).
        """
        self.qmp.quit()
        ended = wait_until(lambda: not self.process.is_alive(), deadline, interval_s=0.005)
        self.close()
        if not ended:
            raise SandboxError(f"{self.name}: QEMU did not quit in {deadline.timeout_s:.0f} s")

    def freeze_devices(self, state: Path, deadline: Deadline) -> None:
        """Stop the guest and write its devices to `state`; its memory is already in its own, shared, file.

        Raises:
            SandboxError: QEMU could not write the state.
        """
        try:
            self.qmp.stop()
            self.qmp.migrate(f"file:{state}", [(_IGNORE_SHARED, True)])
            self.qmp.wait_migrated(deadline)
        except TransportError as error:
            raise SandboxError(f"{self.name}: freezing failed: {error}") from error

    def write_all(self, path: Path, deadline: Deadline) -> None:
        """Stop the guest and write all of its memory and devices to `path`, pages at fixed places.

        Raises:
            SandboxError: QEMU could not write them.
        """
        try:
            self.qmp.stop()
            # QEMU holds back to 128 MiB/s by default, for the sake of a network that is not there.
            self.qmp.execute("migrate-set-parameters", {"max-bandwidth": 1 << 40})
            self.qmp.migrate(f"file:{path}", [(_IGNORE_SHARED, False), (_MAPPED_RAM, True)])
            self.qmp.wait_migrated(deadline)
        except TransportError as error:
            raise SandboxError(f"{self.name}: checkpointing failed: {error}") from error


def fork_files(directory: Path, frozen: Frozen) -> MachineFiles:
    """Name the files of a fork of `frozen` that lives in `directory`."""
    image = frozen.manifest.image_directory
    return MachineFiles(
        directory=directory,
        kernel=image / "vmlinuz",
        initrd=image / "initrd.img",
        disk=directory / "disk.qcow2",
        memory=frozen.memory,
        memory_offset=frozen.manifest.memory_offset,
        token=directory / "seed-token",
        authorized_key=directory / "seed-key",
    )


def create_overlay(overlay: Path, backing: Path, backing_format: str, size_bytes: int | None = None) -> None:
    """Make an empty qcow2 over `backing`.

    Args:
        overlay: The file to make.
        backing: What it reads from; need not exist yet when `size_bytes` is given.
        backing_format: `raw` or `qcow2`.
        size_bytes: Virtual size; taken from `backing` when None.

    Raises:
        SandboxError: qemu-img failed, or is not installed.
    """
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(backing), "-F", backing_format]
    command += [str(overlay)] if size_bytes is None else ["-u", str(overlay), str(size_bytes)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"qemu-img could not make {overlay}: {error} (Debian package: qemu-utils)") from error
    if done.returncode:
        raise SandboxError(f"qemu-img could not make {overlay}: {done.stderr.strip()}")


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used, seconds.

    Raises:
        SandboxError: There is no such process.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError as error:
        raise SandboxError(f"process {pid} is gone") from error
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settle(pid: int, deadline: Deadline, *, share: float = 0.08, window_s: float = 2.0) -> None:
    """Wait until a QEMU has used less than `share` of one processor for `window_s` seconds, or the deadline passes."""
    last = (time.monotonic(), cpu_seconds(pid))

    def is_idle() -> bool:
        nonlocal last
        now, used = time.monotonic(), cpu_seconds(pid)
        elapsed, spent = now - last[0], used - last[1]
        if elapsed < window_s:
            return False
        last = (now, used)
        return spent / elapsed < share

    wait_until(is_idle, deadline, interval_s=window_s / 4)


def private_memory_mib(pid: int) -> float:
    """Return the memory that a process shares with no other, MiB; its view of a template's memory file is not counted.

    Raises:
        SandboxError: There is no such process, or we may not look at it.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError as error:
        raise SandboxError(f"the memory of process {pid} cannot be read: {error}") from error
    # Private_Clean pages of a fork are the template's page cache seen by one fork only: they cost nothing.
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:")) / 1024
