"""Shapes and strides: checks of legal values, dense strides, and the range that elements span."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache
from math import prod

from landbridge.dtypes import dtype as dtype_facts
from landbridge.errors import InputError

#: Of one allocation; beyond it, offsets would not fit the signed words devices use.
LARGEST_BYTES = 1 << 62


def check_shape(shape: Sequence[int], dtype: str) -> tuple[int, ...]:
    """Returns ``shape`` as ints; raises InputError for a negative extent or a size that no device can address."""
    try:
        extents = tuple(map(operator.index, shape))
    except TypeError:
        raise InputError(f"shape {shape!r} is not legal; give a sequence of integers") from None
    dense_bytes(extents, dtype)
    return extents


def check_strides(strides: Sequence[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns ``strides``, in elements, as ints; raises InputError unless each dimension of ``shape`` has one."""
    try:
        steps = tuple(map(operator.index, strides))
    except TypeError:
        raise InputError(f"strides {strides!r} are not legal; give a sequence of integers") from None
    if len(steps) != len(shape):
        raise InputError(f"strides {steps} do not match shape {shape}; give one for each dimension")
    if any(abs(step) > LARGEST_BYTES for step in steps):
        raise InputError(f"strides {steps} reach further than any device can address ({LARGEST_BYTES})")
    return steps


@lru_cache(maxsize=512)
def dense_bytes(extents: tuple[int, ...], dtype: str) -> int:
    """Returns the bytes of dense elements; raises InputError as ``check_shape`` does."""
    if any(extent < 0 for extent in extents):
        raise InputError(f"shape {extents} has a negative extent; give integers of at least 0")
    itemsize = dtype_facts(dtype).itemsize
    if prod(max(extent, 1) for extent in extents) * itemsize > LARGEST_BYTES:
        raise InputError(f"{dtype}{list(extents)} has more bytes than any device can address ({LARGEST_BYTES})")
    return prod(extents) * itemsize


def reach(shape: Sequence[int], strides: Sequence[int], size: int = 1) -> tuple[int, int]:
    """Returns the half-open range that the elements lie in, relative to the first; ``(0, 0)`` when there are none.

    ``size`` is the size of an element in the unit of ``strides``.
    """
    if 0 in shape:
        return 0, 0
    low = high = 0
    for extent, step in zip(shape, strides, strict=True):
        if step > 0:
            high += (extent - 1) * step
        else:
            low += (extent - 1) * step
    return low, high + size


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Returns the number of elements from the first to the end of the last, gaps included; ``strides`` are not
    negative.
    """
    return reach(shape, strides)[1]


def same_layout(shape: Sequence[int], one: Sequence[int], other: Sequence[int]) -> bool:
    """Returns whether elements of ``shape`` have the same offsets by either strides; an axis of extent 1 does not
    count.
    """
    return 0 in shape or all(a == b or extent == 1 for extent, a, b in zip(shape, one, other, strict=True))


@lru_cache(maxsize=4096)
def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides, in elements, of dense row-major elements."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
