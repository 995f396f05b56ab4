"""Baking: freezing a fork after a task's whole set-up, so that every trial goes on from the same instant."""

import hashlib
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from deskfork.core.errors import SandboxError
from deskfork.core.waiting import Deadline
from deskfork.sandbox.base import Sandbox
from deskfork.sandbox.frozen.files import FrozenFile, file_sha256, occupied_bytes, remove_folder
from deskfork.sandbox.frozen.frozen import Frozen, write_manifest
from deskfork.sandbox.frozen.manifest import BakedFrom, FrozenManifest
from deskfork.sandbox.frozen.mapped_ram import (
    MappedRam,
    compare,
    count_pages,
    keep_out_of_bitmap,
    state_sha256,
    write_delta,
)
from deskfork.sandbox.frozen.overlays import name_from, set_backing
from deskfork.sandbox.running import RunningMachine, create_overlay, settle
from deskfork.sandbox.templates.baked import Baked, BakeOptions
from deskfork.sandbox.templates.store import partial_directory, require_space, store
from deskfork.sandbox.templates.template import baked_directory
from deskfork.sandbox.vm import VmSandbox

SETTLE_TIMEOUT_S = 180.0
"""What is busy when it is frozen goes on being busy in every fork, so it is worth waiting for once."""
QUIT_TIMEOUT_S = 60.0
WRITE_TIMEOUT_S = 180.0
DELTA_SHARE = 0.5
"""A delta pays while it has no more than this share of the pages that are not zero: a fork copies each of a delta's
pages into memory of its own, and shares those of the full form with all other forks."""


def bake(
    fork: Callable[[], VmSandbox],
    parent: Frozen,
    key: str,
    prepare: Callable[[Sandbox], None],
    *,
    task: str,
    options: BakeOptions,
) -> Baked:
    """Fork, prepare, settle, freeze, store; replaces what was baked of the same ingredients.

    Args:
        fork: Forks `parent`.
        parent: A template that was booted.
        key: Of the set-up.
        prepare: Runs the set-up.
        task: The task's id.
        options: What the guest has meanwhile.

    Raises:
        InfraError: Set-up failed, or the machine could not be frozen; nothing is left behind.
    """
    target = baked_directory(parent, key, network=options.network)
    require_space(target.parent, parent.manifest.machine)
    laps = _Laps()
    with ExitStack() as undo:
        options.on_progress("forking")
        sandbox = undo.enter_context(fork())
        laps.end("fork")
        options.on_progress("setting up")
        prepare(sandbox)
        laps.end("setup")
        machine, token = sandbox.hand_over()
        options.on_progress("waiting until the guest is idle")
        settle(machine.process.pid, Deadline.after(SETTLE_TIMEOUT_S))
        laps.end("settle")
        options.on_progress("freezing")
        written = machine.files.directory / "memory-baked"
        try:
            machine.write_all(written, Deadline.after(WRITE_TIMEOUT_S))
            machine.quit(Deadline.after(QUIT_TIMEOUT_S))
            laps.end("write")
            partial = partial_directory(target, sandbox.facts.id)
            partial.mkdir(mode=0o700)
            undo.callback(remove_folder, partial)
            baked = BakedFrom(
                task=task,
                key=key,
                parent=parent.directory.name,
                parent_digest=parent.manifest.digest,
                network=options.network,
            )
            manifest = _fill(partial, target, machine, written, parent)
            laps.end("store")
            manifest = manifest.model_copy(update={"baked": baked, "token": token, "build_s": laps.seconds})
            write_manifest(partial, manifest)
        except OSError as error:
            raise SandboxError(f"{task}: its baked template could not be written: {error}") from error
        store(partial, target)
    return described(target, manifest, is_new=True)


def described(directory: Path, manifest: FrozenManifest, *, is_new: bool) -> Baked:
    """Describe a baked template."""
    return Baked(
        template=manifest.name,
        key=manifest.baked.key if manifest.baked else "",
        digest=manifest.digest,
        is_new=is_new,
        form="delta" if manifest.memory_form == "delta" else "full",
        disk_mib=occupied_bytes(directory) / 2**20,
        phases_s=manifest.build_s,
    )


def _fill(partial: Path, target: Path, machine: RunningMachine, written: Path, parent: Frozen) -> FrozenManifest:
    """Put all files but the manifest into the folder `partial`, and return that."""
    memory_bytes = parent.manifest.machine.memory_mib << 20
    layout = MappedRam.find(written, memory_bytes)
    differing, present = compare(written, layout, parent.memory)
    offset = 0
    if count_pages(differing) <= DELTA_SHARE * present:
        form, name = "delta", "delta"
        write_delta(written, layout, differing, partial / name)
        pages_sha256 = ""
    else:
        form, name = "full", "memory"
        pages_sha256 = state_sha256(written, memory_bytes)
        offset = keep_out_of_bitmap(written.rename(partial / name), memory_bytes)
    machine.files.disk.rename(partial / "disk.qcow2")
    set_backing(partial / "disk.qcow2", name_from(target, parent.disk), "qcow2")
    disk_bytes = (parent.manifest.image_directory / "disk.raw").stat().st_size
    create_overlay(partial / "overlay.qcow2", target / "disk.qcow2", "qcow2", disk_bytes)
    hashes = {
        name: state_sha256(partial / name, memory_bytes),
        "disk.qcow2": file_sha256(partial / "disk.qcow2"),
        # The empty overlay names the template's folder, which is no part of its contents.
        "overlay.qcow2": "",
    }
    contents = "\n".join((parent.manifest.digest, *hashes.values(), pages_sha256))
    return parent.manifest.model_copy(
        update={
            "digest": hashlib.sha256(contents.encode()).hexdigest(),
            "created_at": datetime.now(UTC),
            "files": {
                file: FrozenFile(size=(partial / file).stat().st_size, sha256=sha256) for file, sha256 in hashes.items()
            },
            "memory_form": form,
            "memory_offset": offset,
        }
    )


class _Laps:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begun_at = time.monotonic()

    def end(self, phase: str) -> None:
        now = time.monotonic()
        self.seconds[phase] = round(now - self._begun_at, 3)
        self._begun_at = now
