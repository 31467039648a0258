"""Broadcasting of shapes whose extents may be Sizes.

Two open extents of different inputs that meet in an axis have two meanings. Most programs take them as equal, which
gives the best code. Other programs compute with the larger of the two: an input whose extent is 1 in a run repeats its
element, and a run in which neither is 1 nor both are equal is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from landbridge.sizes.size import Extent, Size, always_at_least, clamped, largest, of_symbol, same, undecided


def broadcast_shapes(*shapes: Sequence[Extent], either: bool = False) -> tuple[Extent, ...]:
    """Returns the shape that ``shapes`` broadcast to under numpy's rules.

    ``either``: two extents may be equal in one run and one of them 1 in another; the result has the larger one, which
    ``repeats`` recognizes. Without it, they have to be equal.

    Raises ValueError where they do not broadcast, UndecidedSizeError where that depends on the input.
    """
    reversed_axes = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return tuple(_extent(axis, shapes, either) for axis in reversed_axes)[::-1]


def repeats(extent: Extent, result: Extent) -> bool:
    """Returns whether an axis of ``extent`` that broadcasts to ``result`` may be 1 in a run where ``result`` is
    larger."""
    return extent != 1 and extent != result and same(extent, result) is not True


def legal_extent(extent: Extent, result: Extent) -> Extent:
    """Returns the value that ``extent``, at least 1, must have to broadcast to ``result``: ``result``, or 1 if it
    is 1."""
    return 1 + clamped(extent - 1, 0, 1) * (result - 1)


def _extent(axis: Sequence[Extent], shapes: Sequence[Sequence[Extent]], either: bool) -> Extent:
    result: Extent = 1
    for extent in sorted(axis, key=lambda each: isinstance(each, Size)):  # numbers first, which others are then
        if extent == 1 or extent == result:
            continue
        if result == 1:
            result = extent
            continue
        equal = same(extent, result)
        if equal is None and may_broadcast(extent, result) and either:
            result = _max(extent, result)
            continue
        if equal is None:
            raise undecided(
                f"shapes {', '.join(map(str, shapes))} broadcast where {extent} is {result}",
                extent,
                result,
                equal=True,
                needed=True,
                broadcasts=may_broadcast(extent, result),
            )
        if not equal:
            raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast: {extent} is not {result}")
        result = result if isinstance(result, int) else extent
    return result


def _max(left: Extent, right: Extent) -> Extent:
    """Returns the larger of two extents that broadcast together; a number above 1 if one of them is that."""
    values = [each for each in (left, right) if isinstance(each, int)]
    return values[0] if values else largest(left, right)


def may_broadcast(left: Extent, right: Extent) -> bool:
    """Returns whether one of two extents may be 1 in a run and the other not.

    That holds for extents of different inputs, or for a dimension and a number. Extents of one image, as W and
    ``2 * (W // 2)``, are equal, or the model cannot run.
    """
    if not (always_at_least(left, 1) and always_at_least(right, 1)):
        return False
    if isinstance(left, Size) and isinstance(right, Size):
        return left.symbols.keys() != right.symbols.keys()
    (size,) = (each for each in (left, right) if isinstance(each, Size))
    return [size] == [of_symbol(symbol) for symbol in size.symbols.values()]
