"""Guards against screen dumps that are cut, lie about their size, or are no picture."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.core.errors import TransportError
from deskfork.transport.screen import decode_ppm

PIXELS = bytes(range(18))


def test_pixels_are_rgb_from_the_top_left(tmp_path: Path) -> None:
    path = tmp_path / "screen.ppm"
    path.write_bytes(b"P6\n3 2\n255\n" + PIXELS)
    for source in (path, path.read_bytes()):
        image = decode_ppm(source)
        assert (image.mode, image.size) == ("RGB", (3, 2))
        assert image.tobytes() == PIXELS
        assert image.getpixel((0, 1)) == (9, 10, 11)


def test_pixels_that_look_like_white_space_are_pixels() -> None:
    assert decode_ppm(b"P6\n1 2\n255\n" + b"      ").tobytes() == b"      "


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"P6",
        b"P5\n3 2\n255\n" + PIXELS,
        b"P6\n3 2\n255\n" + PIXELS[:-1],
        b"P6\n3 2\n255\n" + PIXELS + b"x",
        b"P6\n3 2\n65535\n" + PIXELS,
        b"P6\n0 2\n255\n",
        b"P6\n-3 2\n255\n" + PIXELS,
        b"P6\n8193 1\n255\n" + bytes(8193 * 3),
        b"P6\n99999999999 2\n255\n" + PIXELS,
        b"P6\n#3 2\n3 2\n255\n" + PIXELS,
        "P6\n\u0663 2\n255\n".encode() + PIXELS,
    ],
)
def test_anything_else_is_a_transport_error(raw: bytes) -> None:
    with pytest.raises(TransportError):
        decode_ppm(raw)


def test_a_missing_file_is_a_transport_error(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match="missing"):
        decode_ppm(tmp_path / "missing.ppm")


@given(st.binary(max_size=60), st.sampled_from([b"", b"P6\n", b"P6\n2 2\n255\n"]))
def test_arbitrary_bytes_are_an_image_or_a_transport_error(raw: bytes, prefix: bytes) -> None:
    try:
        decode_ppm(prefix + raw)
    except TransportError:
        return
    assert prefix == b"P6\n2 2\n255\n"
