"""Bytes of images: which ranges are whole rows or pixels, and where those lie."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from landbridge.device.pixels import PixelRows
from landbridge.errors import InputError


@dataclass
class Image(PixelRows):
    height: int = 3
    width: int = 4
    pixel_bytes: int = 8


@pytest.mark.parametrize(
    ("byte_offset", "nbytes", "first", "size"),
    [
        (0, 96, (0, 0), (4, 3)),
        (32, 64, (0, 1), (4, 2)),
        (32, 32, (0, 1), (4, 1)),
        (40, 16, (1, 1), (2, 1)),
        (88, 8, (3, 2), (1, 1)),
    ],
)
def test_rows_and_pixels(byte_offset: int, nbytes: int, first: tuple[int, int], size: tuple[int, int]) -> None:
    Image().check_pixels(byte_offset, nbytes)
    assert Image().block(byte_offset, nbytes) == (first, size)


@pytest.mark.parametrize(
    ("byte_offset", "nbytes"), [(0, 97), (-8, 8), (0, -8), (4, 8), (0, 4), (24, 16), (8, 32), (64, 64)]
)
def test_what_is_neither_rows_nor_pixels_of_one(byte_offset: int, nbytes: int) -> None:
    with pytest.raises(InputError, match=f"{nbytes} bytes from {byte_offset} on of an image of 3 rows of 32 bytes"):
        Image().check_pixels(byte_offset, nbytes)
