"""Layout: the physical form of an operand."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from landbridge.analysis.axis_classes import AxisClass
from landbridge.ir.packing import packed_shape
from landbridge.ir.types import (
    AnyMemRef,
    AnyTensor,
    dtype_of,
    extents_attr,
    memref_of,
    shape_of,
    tensor_type,
    vdevice_of,
)
from landbridge.records import record


@record(frozen=True)
class Layout:
    """A physical layout: ``order`` permutes the axes, then ``axes`` are cut into ``tiles``."""

    order: tuple[int, ...]
    axes: tuple[int, ...]
    tiles: tuple[int, ...]

    @staticmethod
    def of_channels(rank: int, tile: int) -> Layout:
        """Returns the layout of blocked activations."""
        return Layout(tuple(range(rank)), (1,), (tile,))

    @property
    def is_of_channels(self) -> bool:
        """Returns whether this is the layout of blocked activations."""
        return self.axes == (1,) and self.order == tuple(range(len(self.order)))

    def moves_nothing(self, shape: Sequence[int]) -> bool:
        """Returns whether ``shape`` is unchanged in memory: only ones follow the channels, and all tiles are full."""
        return self.is_of_channels and all(e == 1 for e in shape[2:]) and shape[1] % self.tiles[0] == 0

    def shape(self, plain: Sequence[int]) -> tuple[int, ...]:
        """Returns the physical shape of a ``plain`` one."""
        return packed_shape([plain[i] for i in self.order], self.axes, self.tiles)

    def tensor(self, plain: Attribute) -> AnyTensor:
        """Returns the type of a ``plain`` tensor in this layout."""
        return tensor_type(self.shape(shape_of(plain)), dtype_of(plain), vdevice_of(plain))

    def memref(self, plain: AnyMemRef) -> AnyMemRef:
        """Returns the type of a ``plain`` memref in this layout."""
        return memref_of(plain.element_type, extents_attr(self.shape(shape_of(plain))), plain.memory_space)


def layout_of(buffer: SSAValue, cut: Sequence[AxisClass], tile: int, first: AxisClass | None = None) -> Layout | None:
    """Returns the layout of ``buffer`` blocked by the classes ``cut``, or None if it is not blocked.

    The axis of ``first`` moves to the front.
    """
    rank = len(shape_of(buffer.type))
    order = list(range(rank))
    lead = first.axis_of(buffer) if first is not None else None
    if lead:
        order.remove(lead)
        order.insert(0, lead)
    axes = [order.index(a) for c in cut if (a := c.axis_of(buffer)) is not None]
    return Layout(tuple(order), tuple(axes), (tile,) * len(axes)) if axes else None
