"""Guards the metric on pictures: pictures that only look right by their levels, and bytes made to break the decoder."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.metrics.images import MAX_IMAGE_BYTES, compare_jupyterlab_images, is_blank_picture


def encoded(picture: Image.Image, kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    picture.save(stream, kind)
    return stream.getvalue()


def bars(*heights: int) -> Image.Image:
    drawn = Image.new("RGB", (64, 48), "white")
    for place, height in enumerate(heights):
        drawn.paste((49, 115, 161), (16 * place + 4, 48 - height, 16 * place + 14, 48))
    return drawn


def claiming(width: int, height: int) -> bytes:
    """A PNG of a few bytes whose header claims any size."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return GOLD[:8] + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header)) + GOLD[33:]


GOLD = encoded(bars(40, 20, 10))


@pytest.mark.parametrize(
    ("result", "upstream", "strict"),
    [
        (GOLD, 1.0, 1.0),
        (encoded(bars(40, 20, 10).convert("RGBA")), 1.0, 1.0),
        (encoded(bars(40, 20, 10).quantize(4)), 1.0, 1.0),
        (encoded(bars(40, 19, 10)), 0.0, 0.0),
        (encoded(bars(20, 40, 10)), 1.0, 0.0),
        (encoded(Image.new("RGB", (64, 48), "white")), 0.0, 0.0),
        (encoded(Image.new("RGB", (1, 1), "white")), 0.0, 0.0),
        (encoded(bars(40, 20, 10).convert("1")), 0.0, 0.0),
        (encoded(bars(40, 20, 10), "JPEG"), 0.0, 0.0),
        (encoded(bars(40, 20, 10), "GIF"), 0.0, 0.0),
        (b"", 0.0, 0.0),
        (GOLD[:-1], 0.0, 0.0),
        (GOLD[:-12], 0.0, 0.0),
        (GOLD[: len(GOLD) // 2], 0.0, 0.0),
        (claiming(60_000, 60_000), 0.0, 0.0),
        (claiming(0, 48), 0.0, 0.0),
        (GOLD + b" " * MAX_IMAGE_BYTES, 0.0, 0.0),
    ],
)
def test_pictures_are_compared(result: bytes, upstream: float, strict: float) -> None:
    compared = compare_jupyterlab_images(result, GOLD)
    assert (compared.upstream, compared.strict) == (upstream, strict)
    assert bool(compared.upstream.detail) == (upstream == 0.0)
    assert bool(compared.strict.detail) == (strict == 0.0)


def test_a_picture_of_16_bits_is_read_by_its_upper_8() -> None:
    levels = np.arange(64 * 48, dtype=np.uint16).reshape(48, 64) % 200
    deep, flat = Image.fromarray(levels * 257), Image.fromarray(levels.astype(np.uint8))
    compared = compare_jupyterlab_images(encoded(deep), encoded(flat))
    assert (compared.upstream, compared.strict) == (1.0, 1.0)


# What OpenCV 4.10's resize makes of arange(height * width) * 37 % 251: size before, rows after.
@pytest.mark.parametrize(
    ("size", "scaled"),
    [
        ((8, 4), [[41, 115, 189, 75], [131, 205, 91, 102]]),
        ((7, 3), [[9, 61, 113, 165, 216], [21, 73, 125, 177, 228]]),
        ((9, 5), [[201, 61, 172]]),
    ],
)
def test_a_wider_picture_is_scaled_as_opencv_does(size: tuple[int, int], scaled: list[list[int]]) -> None:
    width, height = size
    wide = Image.fromarray((np.arange(height * width) * 37 % 251).astype(np.uint8).reshape(height, width))
    gold = np.array(scaled, dtype=np.uint8)
    assert compare_jupyterlab_images(encoded(wide), encoded(Image.fromarray(gold))).upstream == 1.0
    gold[0, 0] += 1
    assert compare_jupyterlab_images(encoded(wide), encoded(Image.fromarray(gold))).upstream == 0.0


@pytest.mark.parametrize("raw", [b"", GOLD[:-12], claiming(60_000, 60_000)])
def test_a_gold_picture_that_is_none_is_refused_not_scored(raw: bytes) -> None:
    with pytest.raises(EvaluationError, match="gold picture"):
        compare_jupyterlab_images(GOLD, raw)


def test_one_colour_is_a_blank_picture_and_so_is_none() -> None:
    assert is_blank_picture(encoded(Image.new("RGB", (64, 48), "white")))
    assert is_blank_picture(encoded(Image.new("RGBA", (64, 48), (0, 0, 0, 0))))
    assert is_blank_picture(b"")
    assert not is_blank_picture(GOLD)
