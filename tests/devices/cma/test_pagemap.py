"""What pagemap says, over a file in its place, and as the kernel says it where it does."""

from __future__ import annotations

import array
import mmap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from landbridge.devices.cma.pagemap import is_contiguous

_PAGE = mmap.PAGESIZE
_PRESENT = 1 << 63


@pytest.fixture
def pages() -> Iterator[int]:
    """The address of four pages."""
    memory = np.zeros(5 * _PAGE, np.uint8)
    yield -(-memory.ctypes.data // _PAGE) * _PAGE


def pagemap(folder: Path, address: int, frames: list[int], present: int = _PRESENT) -> Path:
    path = folder / "pagemap"
    with path.open("wb") as file:
        file.seek(address // _PAGE * 8)
        file.write(array.array("Q", [frame | present for frame in frames]).tobytes())
    return path


@pytest.mark.parametrize(
    ("frames", "expected"),
    [([7, 8, 9, 10], True), ([7, 8, 10, 11], False), ([10, 9, 8, 7], False), ([0, 0, 0, 0], None), ([7, 8, 9], None)],
)
def test_frames_that_follow_each_other(tmp_path: Path, pages: int, frames: list[int], expected: bool | None) -> None:
    assert is_contiguous(pages, 4 * _PAGE, pagemap(tmp_path, pages, frames)) is expected


def test_only_the_pages_that_are_requested_count(tmp_path: Path, pages: int) -> None:
    frames = pagemap(tmp_path, pages, [1, 7, 8, 2])
    assert is_contiguous(pages + _PAGE + 5, 2 * _PAGE - 5, frames) is True
    assert is_contiguous(pages + _PAGE - 1, 2, frames) is False
    assert is_contiguous(pages + _PAGE - 1, 1, frames) is True


def test_pages_that_are_nowhere(tmp_path: Path, pages: int) -> None:
    assert is_contiguous(pages, 4 * _PAGE, pagemap(tmp_path, pages, [7, 8, 9, 10], present=0)) is None
    assert is_contiguous(pages, 4 * _PAGE, tmp_path / "missing") is None


def test_one_page_is_never_scattered(pages: int) -> None:
    assert is_contiguous(pages, _PAGE) in (True, None)
