"""Choice of the axes that make the rows of a tensor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.analysis.free_rows import choose_separators
from landbridge.memory_kind import MemoryKind
from landbridge.shapes.physical import check_axis_separators, nd_bytes, physical_shape
from landbridge.targets import Target

CPU = Target("llvm")


def rows(alignment: int) -> MemoryKind:
    return MemoryKind(
        "global.rows", "read_write", coherent=True, ndim=2, row_alignment=alignment, allocators=("naive",)
    )


IMAGES = MemoryKind("global.texture", "read_write", coherent=True, ndim=3, allocators=("naive",))


@pytest.mark.parametrize(
    ("shape", "separators"),
    [
        ((1, 4, 12, 48, 16), (2,)),  # a block of channels
        ((1, 64, 12, 48), (2,)),  # a channel
        ((1, 4, 7500, 16), (2,)),
        ((64, 512), (1,)),
        ((5,), (0,)),
        ((1, 200, 1, 1), (1,)),  # rows of one scalar would be padded to 32 bytes each
        ((1, 64, 3, 3), (1,)),
    ],
)
def test_two_dimensions(shape: tuple[int, ...], separators: tuple[int, ...]) -> None:
    assert choose_separators(CPU, rows(32), shape, "float32") == separators


@pytest.mark.parametrize(
    ("shape", "separators"), [((1, 16, 28, 28, 4), (3, 4)), ((6, 5, 4), (1, 2)), ((8, 4), (0, 1)), ((4,), (0, 1))]
)
def test_images(shape: tuple[int, ...], separators: tuple[int, ...]) -> None:
    assert choose_separators(CPU, IMAGES, shape, "float32") == separators


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=6).map(tuple),
    st.sampled_from((1, 32, 128, 2048)),
    st.sampled_from(("float32", "int8")),
)
def test_rows_are_legal_and_waste_little(shape: tuple[int, ...], alignment: int, dtype: str) -> None:
    kind = rows(alignment)
    chosen = check_axis_separators(choose_separators(CPU, kind, shape, dtype), len(shape))
    assert len(chosen) == 1
    sizes = [nd_bytes(kind, physical_shape(shape, (axis,)), dtype) for axis in range(len(shape) + 1)]
    assert nd_bytes(kind, physical_shape(shape, chosen), dtype) <= 1.125 * min(sizes)
