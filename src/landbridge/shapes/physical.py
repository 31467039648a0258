"""Physical shapes: which axes of a tensor form which dimension of a space that has more than one.

``axis_separators`` are the axes at which a new dimension of the space begins. A tensor of shape ``(a, b, c, d)`` with
separators ``(2,)`` lies in a 2-D space of ``a * b`` rows of ``c * d`` elements. The first dimension of a space counts
its *rows*, and the elements of all others are dense in a row: with separators ``(2, 3)`` the same tensor makes an image
of ``a * b`` rows, each ``c`` times ``d`` lanes.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import pairwise
from math import prod

from landbridge.dtypes import dtype as dtype_facts
from landbridge.errors import InputError
from landbridge.memory_kind import MemoryKind


def check_axis_separators(separators: Sequence[int], rank: int) -> tuple[int, ...]:
    """Returns ``separators`` as ints; raises InputError unless they rise and lie in ``0 .. rank``."""
    try:
        found = tuple(map(operator.index, separators))
    except TypeError:
        raise InputError(f"axis_separators {separators!r} are not legal; give a sequence of axis numbers") from None
    bounds = (-1, *found, rank + 1)
    if any(low >= high for low, high in pairwise(bounds)):
        raise InputError(
            f"axis_separators {found} of a tensor of rank {rank} are not legal; give axes from 0 to {rank}, rising"
        )
    return found


def separators_for(shape: Sequence[int], separators: Sequence[int] | None, kind: MemoryKind) -> tuple[int, ...]:
    """Returns the axis separators of a tensor of ``shape`` in memory of ``kind``.

    None as ``separators`` makes every axis a dimension, where the tensor has as many axes as the space. Raises
    InputError where they do not make the dimensions that ``kind`` has.
    """
    rank = len(shape)
    if separators is None:
        if kind.ndim in (1, rank):
            return tuple(range(1, kind.ndim))
        raise InputError(
            f"scope {kind.scope!r} has {kind.ndim} dimensions and a tensor of shape {tuple(shape)} has {rank}; say "
            f"which axes make each with axis_separators, {kind.ndim - 1} of them"
        )
    found = check_axis_separators(separators, rank)
    if len(found) != kind.ndim - 1:
        raise InputError(
            f"axis_separators {found} make {len(found) + 1} dimensions, scope {kind.scope!r} has {kind.ndim}; give "
            f"{kind.ndim - 1} of them"
        )
    return found


def physical_shape(shape: Sequence[int], separators: Sequence[int]) -> tuple[int, ...]:
    """Returns the extents of the space that a tensor of ``shape`` takes, outermost first, in elements."""
    bounds = (0, *separators, len(shape))
    return tuple(prod(shape[low:high]) for low, high in pairwise(bounds))


def row_strides(shape: Sequence[int], separators: Sequence[int], row_pitch: int) -> tuple[int, ...]:
    """Returns the strides, in elements, of a tensor whose rows begin ``row_pitch`` elements from each other and are
    dense.
    """
    first_in_row = separators[0]
    strides: list[int] = []
    step = 1
    for axis in reversed(range(len(shape))):
        if axis == first_in_row - 1:
            step = row_pitch
        strides.append(step)
        step *= shape[axis]
    return tuple(reversed(strides))


def row_bytes(physical: Sequence[int], dtype: str) -> int:
    """Returns the bytes of the elements of one row of a space of ``physical`` extents."""
    return prod(physical[1:]) * dtype_facts(dtype).itemsize


def nd_bytes(kind: MemoryKind, physical: Sequence[int], dtype: str) -> int:
    """Returns the bytes of the capacity of ``kind`` that a space of ``physical`` extents takes.

    Each row is rounded up to ``row_alignment``, and an empty one takes as much.
    """
    return physical[0] * max(1, -(-row_bytes(physical, dtype) // kind.row_alignment)) * kind.row_alignment
