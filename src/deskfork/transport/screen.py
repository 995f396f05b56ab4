"""Decodes what the hypervisor dumps of a guest's screen."""

import re
from pathlib import Path

from PIL import Image

from deskfork.core.errors import TransportError

MAX_SIDE_PX = 8192
_HEADER = re.compile(rb"P6\n([0-9]{1,5}) ([0-9]{1,5})\n255\n")
"""As QEMU writes it."""


def check_size(width_px: int, height_px: int) -> None:
    """Refuse an image of no or absurd size.

    Raises:
        TransportError: A side is not between 1 and MAX_SIDE_PX.
    """
    if not (1 <= width_px <= MAX_SIDE_PX and 1 <= height_px <= MAX_SIDE_PX):
        raise TransportError(f"screen image of {width_px} x {height_px} pixels")


def decode_ppm(source: Path | bytes) -> Image.Image:
    """Return a binary PPM (P6, 8 bits per channel) as an RGB image, origin top left.

    Args:
        source: The file or its bytes.

    Raises:
        TransportError: It is not such an image, or larger than MAX_SIDE_PX on a side.
    """
    raw = source if isinstance(source, bytes) else _read(source)
    found = _HEADER.match(raw)
    if found is None:
        raise TransportError(f"screen dump is no PPM: it starts {raw[:32]!r}")
    width_px, height_px = int(found[1]), int(found[2])
    check_size(width_px, height_px)
    if len(raw) != found.end() + width_px * height_px * 3:
        raise TransportError(
            f"screen dump of {len(raw)} bytes does not hold {width_px} x {height_px} pixels of 3 bytes"
        )
    return Image.frombuffer("RGB", (width_px, height_px), raw[found.end() :], "raw", "RGB", 0, 1)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_SIDE_PX * MAX_SIDE_PX * 3 + 32 + 1)
    except OSError as exc:
        raise TransportError(f"read screen dump {path}: {exc}") from exc
    return raw
