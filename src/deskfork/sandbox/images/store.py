"""The images that were built: one folder each, with a manifest beside the files."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from deskfork.core.atomic import write_atomic
from deskfork.core.config import StrictModel
from deskfork.core.errors import InfraError
from deskfork.sandbox.images.seal import SEAL_NAME, FileSeal, read_seal

MANIFEST_NAME = "manifest.json"

Kind = Literal["guest", "qemu"]


class ImageManifest(StrictModel):
    """What lies beside an image's files."""

    kind: Kind
    key: str
    """Hash of the recipe that it was built by."""
    digest: str
    """Hash of its contents: two builds by one recipe differ, because Debian's packages move on."""
    built_at: datetime
    files: dict[str, FileSeal]


def publish(cache_dir: Path, kind: Kind, key: str, artifact: Path) -> tuple[ImageManifest, Path]:
    """Move a finished artifact to where images are found."""
    sealed = read_seal(artifact)
    if sealed is None:
        raise InfraError(f"{artifact} has no seal: its file system loses files")
    manifest = ImageManifest(kind=kind, key=key, digest=sealed.digest, built_at=datetime.now(UTC), files=sealed.files)
    write_atomic(artifact / MANIFEST_NAME, manifest.model_dump_json(indent=1) + "\n")
    (artifact / SEAL_NAME).unlink()
    directory = _images_dir(cache_dir) / f"{kind}-{manifest.digest[:16]}"
    directory.parent.mkdir(parents=True, exist_ok=True)
    artifact.rename(directory)
    return manifest, directory


def manifests(cache_dir: Path) -> Iterator[tuple[ImageManifest, Path]]:
    """Yield all images whose manifest can be read, newest first."""
    found: list[tuple[ImageManifest, Path]] = []
    for path in _images_dir(cache_dir).glob(f"*/{MANIFEST_NAME}"):
        try:
            found.append((ImageManifest.model_validate_json(path.read_bytes()), path.parent))
        except (ValidationError, FileNotFoundError):
            continue
    yield from sorted(found, key=lambda image: image[0].built_at, reverse=True)


def _images_dir(cache_dir: Path) -> Path:
    return cache_dir / "images"
