"""Broadcasting of shapes whose extents may be Sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from landbridge.sizes.size import Extent, same, undecided


def broadcast_shapes(*shapes: Sequence[Extent]) -> tuple[Extent, ...]:
    """The shape that ``shapes`` broadcast to, as numpy's; a Size that may be 1 is not stretched.

    Raises ValueError where they do not broadcast, UndecidedSizeError where that depends on the input.
    """
    reversed_axes = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return tuple(_extent(axis, shapes) for axis in reversed_axes)[::-1]


def _extent(axis: Sequence[Extent], shapes: Sequence[Sequence[Extent]]) -> Extent:
    result: Extent = 1
    for extent in axis:
        if extent == 1 or extent == result:
            continue
        if result == 1:
            result = extent
            continue
        equal = same(extent, result)
        if equal is None:
            raise undecided(
                f"shapes {', '.join(map(str, shapes))} broadcast where {extent} is {result}",
                extent,
                result,
                equal=True,
                needed=True,
            )
        if not equal:
            raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast: {extent} is not {result}")
        result = result if isinstance(result, int) else extent
    return result
