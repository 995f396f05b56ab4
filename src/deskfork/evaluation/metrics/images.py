"""Metrics on pictures, which are decoded here: guest bytes, of any size and shape."""

import io
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops

from deskfork.core.errors import EvaluationError
from deskfork.evaluation.metrics.judged import MATCH, Comparison, Judged

MAX_IMAGE_BYTES = 16 * 1024 * 1024
MAX_PIXELS = 16_000_000
_FORMATS = ("PNG", "JPEG", "BMP", "WEBP")
_PNG_END = b"\0\0\0\0IEND\xaeB\x60\x82"
_LEVELS = 256
# Rounding in blending and colour conversion; text and lines that moved, or another shade, are far above.
_TOLERATED_LEVELS = 8
_COEFFICIENT_SCALE = 2048
_DECODER_FAILS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    Image.DecompressionBombError,
    Warning,
    struct.error,
    zlib.error,
)
_Channel = NDArray[np.uint8]


class _Undecodable(ValueError):
    """The bytes are no picture; the message says why."""


def compare_jupyterlab_images(result: bytes, gold: bytes) -> Comparison:
    """Compare two pictures.

    upstream: the wider one (of two that are equally wide, the higher one; if none is, the gold one) is scaled to the
    other's width. Then the distributions of green levels, each stretched to 0..1, must correlate with exactly 1. Where
    in the picture a level occurs, red, blue and opacity do not matter; a picture in which all 256 levels occur equally
    often equals every other.

    strict: a PNG of the gold picture's size, in which on white paper no pixel differs by more than a rounding.

    Args:
        result: The guest's picture.
        gold: The gold picture.

    Returns:
        1.0 or 0.0 for each; what cannot be decoded is 0.0: upstream's runner takes the exception for that.
        Decoded by Pillow, where upstream uses OpenCV: the same pixels for PNG and BMP with 8 bits a channel, nearly so
        for JPEG and WebP. Other formats, more than `MAX_IMAGE_BYTES` and more than `MAX_PIXELS` are 0.0 for both.

    Raises:
        EvaluationError: The gold picture cannot be decoded.

    Source: xlang-ai/Spider2-V, desktop_env/evaluators/metrics/jupyterlab.py, `compare_jupyterlab_images`.
    """
    try:
        wanted = _decoded(gold)
    except _Undecodable as error:
        raise EvaluationError(f"the gold picture cannot be compared with: {error}") from error
    try:
        found = _decoded(result)
    except _Undecodable as error:
        return Comparison.agreed(Judged(0.0, f"the picture is broken: {error}"))
    return Comparison(_upstream(found, wanted), _strict(found, wanted))


def is_blank_picture(raw: bytes) -> bool:
    """Tell whether a picture has one colour alone, or is none."""
    try:
        picture = _decoded(raw).on_white
    except _Undecodable:
        return True
    return all(channel.min() == channel.max() for channel in np.asarray(picture).transpose(2, 0, 1))


@dataclass(frozen=True)
class _Picture:
    format: str
    rgba: Image.Image

    @property
    def size(self) -> tuple[int, int]:
        return self.rgba.size

    @property
    def on_white(self) -> Image.Image:
        paper = Image.new("RGBA", self.size, "white")
        return Image.alpha_composite(paper, self.rgba).convert("RGB")


def _decoded(raw: bytes) -> _Picture:
    if len(raw) > MAX_IMAGE_BYTES:
        raise _Undecodable(f"it is larger than {MAX_IMAGE_BYTES // 1024**2} MiB")
    try:
        picture = Image.open(io.BytesIO(raw), formats=_FORMATS)
        width, height = picture.size
        if width * height > MAX_PIXELS or not width * height:
            raise _Undecodable(f"it has {width} x {height} pixels")
        if picture.format == "PNG" and _PNG_END not in raw:
            raise _Undecodable("its end is missing")  # Pillow would do without, OpenCV and browsers do not.
        return _Picture(picture.format or "", _eight_bits(picture).convert("RGBA"))
    except _Undecodable:
        raise
    except _DECODER_FAILS as error:
        raise _Undecodable(f"it cannot be decoded ({type(error).__name__})") from error


def _eight_bits(picture: Image.Image) -> Image.Image:
    if not picture.mode.startswith("I"):
        return picture
    # Grey of 16 bits, of which OpenCV keeps the upper 8.
    return Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))


def _upstream(found: _Picture, wanted: _Picture) -> Judged:
    one, other = _green(found), _green(wanted)
    # Compared as (width, height), as upstream's tuples are.
    if found.size > wanted.size:
        one = _scaled_to_width(one, wanted.size[0])
    else:
        other = _scaled_to_width(other, found.size[0])
    if not one.size or not other.size:
        return Judged(0.0, f"the picture, of the size {found.size}, cannot be scaled")
    similarity = _correlation(_histogram(one), _histogram(other))
    if similarity == 1.0:
        return MATCH
    return Judged(0.0, f"the distributions of green correlate with {similarity:.9f} only")


def _green(picture: _Picture) -> _Channel:
    # Opacity is dropped, not blended, as OpenCV does.
    return np.asarray(picture.rgba.getchannel("G"))


def _histogram(channel: _Channel) -> Sequence[float]:
    counts = np.bincount(channel.ravel(), minlength=_LEVELS)
    lowest, highest = int(counts.min()), int(counts.max())
    scale = 1.0 / (highest - lowest) if highest > lowest else 0.0
    # OpenCV keeps histograms in single precision.
    return [float(value) for value in ((counts - lowest) * scale).astype(np.float32)]


def _correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Correlate as OpenCV's `compareHist` does, which calls two histograms equal if one of them is flat."""
    total, other_total = sum(one), sum(other)
    product = sum(map(float.__mul__, one, other)) - total * other_total / _LEVELS
    spread = sum(map(float.__mul__, one, one)) - total * total / _LEVELS
    other_spread = sum(map(float.__mul__, other, other)) - other_total * other_total / _LEVELS
    both = spread * other_spread
    return product / math.sqrt(both) if both > np.finfo(float).eps else 1.0


def _scaled_to_width(channel: _Channel, width: int) -> _Channel:
    """Scale as OpenCV's `resize` does with its defaults (bilinear, in fixed point), bit for bit."""
    height_before, width_before = channel.shape
    height = int(height_before * width / width_before)
    if width == width_before or not height:
        return channel if height else channel[:0]
    wide = channel.astype(np.int64)
    if (width_before, height_before) == (2 * width, 2 * height):
        return ((wide[::2, ::2] + wide[::2, 1::2] + wide[1::2, ::2] + wide[1::2, 1::2] + 2) >> 2).astype(np.uint8)
    left, share, other_share = _taps(width_before, width)
    share[left < 0], other_share[left < 0] = _COEFFICIENT_SCALE, 0
    right_edge = left >= width_before - 1
    share[right_edge], other_share[right_edge] = _COEFFICIENT_SCALE, 0
    left = left.clip(0, width_before - 1)
    rows = wide[:, left] * share + wide[:, (left + 1).clip(max=width_before - 1)] * other_share
    top, share, other_share = _taps(height_before, height)
    upper, lower = (rows[place.clip(0, height_before - 1)] >> 4 for place in (top, top + 1))
    mixed: NDArray[np.int64] = ((share[:, None] * upper) >> 16) + ((other_share[:, None] * lower) >> 16)
    return ((mixed + 2) >> 2).clip(0, _LEVELS - 1).astype(np.uint8)


def _taps(before: int, after: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return for each place after scaling the first of its two places before, and the weights of both."""
    places = ((np.arange(after) + 0.5) * (1.0 / (after / before)) - 0.5).astype(np.float32)
    first = np.floor(places)
    rest = places - first
    shares = (np.rint(part * np.float32(_COEFFICIENT_SCALE)).astype(np.int64) for part in (1 - rest, rest))
    return first.astype(np.int64), *shares


def _strict(found: _Picture, wanted: _Picture) -> Judged:
    if found.format != "PNG":
        return Judged(0.0, f"the picture is a {found.format}, no PNG")
    if found.size != wanted.size:
        return Judged(0.0, f"the picture has the size {found.size}, expected {wanted.size}")
    gap = int(np.asarray(ImageChops.difference(found.on_white, wanted.on_white)).max())
    if gap > _TOLERATED_LEVELS:
        return Judged(0.0, f"the picture differs: a pixel by {gap} of 255 levels")
    return MATCH
