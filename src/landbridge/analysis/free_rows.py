"""Tensors in scopes of several dimensions whose rows the compiler chooses: their types have no axis separators yet.

A request ``npu@global.vtcm[blocked]`` makes such types. The pass ``pack`` may give their tensors a blocked layout; the
pass ``rows`` then chooses the axis separators of the physical shape.
"""

from __future__ import annotations

from itertools import combinations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from landbridge.ir.module import IRModule
from landbridge.ir.traversal import all_operations
from landbridge.ir.types import VDeviceAttr, vdevice_of
from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind
from landbridge.shapes.physical import nd_bytes, physical_shape
from landbridge.sizes.size import expected_size
from landbridge.targets import Target
from landbridge.targets.images import image_limits

#: Rows of one channel, or one block of channels, are chosen unless they take this many times the bytes of other rows.
_ACCEPTED_PADDING = 1.125


def has_free_rows(module: IRModule, vdevice: VDeviceAttr) -> bool:
    """Returns whether ``vdevice`` is a scope of several dimensions without axis separators."""
    kind = _kind(module, vdevice)
    return kind is not None and kind.ndim > 1 and not vdevice.axis_separators


def values_with_free_rows(module: IRModule) -> list[SSAValue]:
    """Returns the results of operations of @main that lie in such a scope."""
    return [
        value
        for op in all_operations(module.main)
        for value in op.results
        if isinstance(value.type, TensorType) and has_free_rows(module, vdevice_of(value.type))
    ]


def has_free_pixels(module: IRModule, vdevice: VDeviceAttr) -> bool:
    """Returns whether ``vdevice`` is a scope of images without axis separators."""
    kind = _kind(module, vdevice)
    return kind is not None and kind.ndim > 2 and not vdevice.axis_separators


def choose_separators(target: Target, kind: MemoryKind, shape: tuple[int, ...], dtype: str) -> tuple[int, ...]:
    """Returns the axis separators of a tensor of physical ``shape`` in a scope of ``kind``.

    In two dimensions, a row is what follows the channels, or the blocks of channels: all pixels of one, so that a
    window over pixels stays in a row. Where short rows would be padded much, the axes that waste least are chosen, of
    these the ones with the most rows. In three dimensions, the innermost axis is a pixel's lanes if the kernels of
    ``target`` can use such images, else the first choice is taken that they can use; the caller checks the result.
    """
    rank, count = len(shape), kind.ndim - 1
    legal = list(combinations(range(rank + 1), count))
    if count > 1:
        limits = image_limits(target, kind.scope)
        choices = [tuple(range(rank - count, rank))] if rank >= count else []
        choices += reversed(legal)
        usable = (s for s in choices if limits is None or limits.refusal(physical_shape(shape, s), dtype) is None)
        return next(usable, choices[0])
    expected = tuple(expected_size(extent) for extent in shape)
    bytes_of = {each: nd_bytes(kind, physical_shape(expected, each), dtype) for each in legal}
    least = min(bytes_of.values())
    rows = (min(2, max(0, rank - 1)),)
    if bytes_of[rows] <= _ACCEPTED_PADDING * least:
        return rows
    best = [each for each in legal if bytes_of[each] == least]
    return max(best, key=lambda each: (physical_shape(expected, each)[0], each))


def _kind(module: IRModule, vdevice: VDeviceAttr) -> MemoryKind | None:
    """Returns what the Target says of the memory; None for ordinary memory, and where it says nothing."""
    scope = vdevice.scope.data
    target = None if scope == GLOBAL_SCOPE else module.target_of(vdevice.index.data)
    return target.memory_kind(scope) if target is not None and target.memory else None
