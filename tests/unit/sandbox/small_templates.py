"""Templates on disk whose files are small, but undamaged; no QEMU could go on from them."""

import struct
from datetime import UTC, datetime
from pathlib import Path

from deskfork.sandbox.frozen.files import FrozenFile, describe_files, file_sha256
from deskfork.sandbox.frozen.frozen import FROZEN_NAMES, read_frozen, write_manifest
from deskfork.sandbox.frozen.manifest import BakedFrom, FrozenManifest
from deskfork.sandbox.frozen.mapped_ram import PAGE, state_sha256
from deskfork.sandbox.machine import MachineSpec
from deskfork.sandbox.templates.template import baked_directory

SPEC = MachineSpec(memory_mib=1024)
_BITMAP, _PAGES = 4096, 1 << 20


def write_booted(cache: Path, name: str = "desktop", *, digest: str = "d1") -> Path:
    directory = cache / "templates" / f"{name}-0123"
    directory.mkdir(parents=True)
    names = FROZEN_NAMES["own"]
    for file in names:
        (directory / file).write_bytes(file.encode() * 100)
    (directory / "id_ed25519").write_bytes(b"key")
    manifest = FrozenManifest(
        name=name,
        digest=digest,
        image_digest="i",
        image_directory=cache / "image",
        qemu_version="10.0.2",
        machine=SPEC,
        token="t",
        kernel_id="k",
        ssh_host_key="ssh-ed25519 AAAA",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        files=describe_files(directory, names, hashed=names[:3]),
    )
    write_manifest(directory, manifest)
    return directory


def write_baked(parent: Path, task: str, *, key: str = "", mib: int = 1) -> Path:
    """Write what might have been baked of `task`, with `mib` MiB of changed pages."""
    over = read_frozen(parent)
    directory = baked_directory(over, key or task, network=False)
    directory.mkdir()
    _write_delta(directory / "delta", mib * 256)
    for file in ("disk.qcow2", "overlay.qcow2"):
        (directory / file).write_bytes(file.encode() * 100)
    hashes = {
        "delta": state_sha256(directory / "delta", SPEC.memory_mib << 20),
        "disk.qcow2": file_sha256(directory / "disk.qcow2"),
        "overlay.qcow2": "",
    }
    baked = BakedFrom(task=task, key=key or task, parent=parent.name, parent_digest=over.manifest.digest)
    files = {name: FrozenFile(size=(directory / name).stat().st_size, sha256=hash_) for name, hash_ in hashes.items()}
    changes = {"digest": f"d-{task}", "memory_form": "delta", "baked": baked, "files": files}
    write_manifest(directory, over.manifest.model_copy(update=changes))
    return directory


def _write_delta(path: Path, pages: int) -> None:
    memory = SPEC.memory_mib << 20
    with path.open("wb") as stream:
        stream.write(b"QEVM\6pc.ram" + struct.pack(">QIQQQ", memory, 1, PAGE, _BITMAP, _PAGES))
        stream.seek(_BITMAP)
        stream.write(((1 << pages) - 1).to_bytes(memory // PAGE // 8, "little"))
        stream.seek(_PAGES)
        stream.write(b"p" * pages * PAGE)
        stream.seek(_PAGES + memory)
        stream.write(b"devices")
