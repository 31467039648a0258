"""Axis classes of a PrimFunc: which axes of which buffers must be blocked together.

A loop that indexes an axis by itself ties that axis to every other axis that it indexes so. Cutting one into tiles cuts
them all; a loop that is also part of a larger index expression cannot be cut. One exception: a loop that runs over
groups of an axis, ``group * K + loop`` where the loop has K iterations, is tied to it as well: tiles that divide K lie
within a group.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field

from xdsl.dialects import linalg, memref
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from landbridge.analysis.union_find import UnionFind
from landbridge.ir.plain_attributes import ints
from landbridge.ir.prim_ops import PadOp
from landbridge.ir.stages import Generic, PrimView, view_generic
from landbridge.ir.types import shape_of
from landbridge.records import record
from landbridge.sizes.size import Size, same

Axis = tuple[SSAValue, int]
Loop = tuple[linalg.ops.GenericOp, int]


@record
class AxisClass:
    """Axes and loops of one extent, which are cut together or not at all.

    ``group`` is not 0 where loops run over groups of that many: all extents are multiples of it, ``extent`` is it, and
    tiles have to divide it.
    """

    extent: int
    axes: set[Axis] = field(default_factory=set)
    loops: set[Loop] = field(default_factory=set)
    reduces: bool = False
    fixed: bool = False
    group: int = 0

    def axis_of(self, buffer: SSAValue) -> int | None:
        """Returns the axis of ``buffer`` in this class; None if there is none."""
        return next((a for b, a in self.axes if b is buffer), None)


def axis_classes(prim: PrimView) -> list[AxisClass]:
    """Returns the classes of a PrimFunc; a ``fixed`` one cannot be cut."""
    ties = _Ties()
    for buffer in (*prim.function.body.block.args, *prim.temporaries):
        for axis, extent in enumerate(shape_of(buffer.type)):
            ties.extents[(buffer, axis)] = extent
    for op in prim.stages:
        if isinstance(op, PadOp):
            ties.pad(op)
        elif isinstance(op, linalg.ops.GenericOp):
            ties.generic(view_generic(op))
    return ties.classes()


class _Ties:
    """Collects axes and loops that are tied to each other, with their extents, and which cannot be cut or reduce."""

    def __init__(self) -> None:
        self.extents: dict[Axis | Loop, int] = {}
        self._union: UnionFind[Hashable] = UnionFind()
        self._fixed: list[Axis | Loop] = []
        self._reducing: set[Loop] = set()
        self._groups: dict[Loop, int] = {}

    def pad(self, op: PadOp) -> None:
        """Mark a padded axis as not to be cut, and tie the others."""
        shapes = shape_of(op.source.type), shape_of(op.destination.type)
        for axis, low in enumerate(ints(op.low)):
            ends = (op.source, axis), (op.destination, axis)
            if not same(low, 0) or not same(shapes[0][axis], shapes[1][axis]):
                self._fixed += ends
            else:
                self._union.join(*ends)

    def generic(self, g: Generic) -> None:
        """Tie each axis to the loop that indexes it by itself; any other index expression fixes its axis and loops."""
        for d, (extent, kind) in enumerate(zip(g.extents, g.iterators, strict=True)):
            self.extents[(g.op, d)] = extent
            if kind == "r":
                self._reducing.add((g.op, d))
        for o in (*g.ins, *g.outs):
            for axis, e in enumerate(o.map.results):
                grouped = group_index(e, g.extents)
                if isinstance(e, AffineDimExpr):
                    self._union.join((o.buffer, axis), (g.op, e.position))
                elif grouped is not None:
                    self._union.join((o.buffer, axis), (g.op, grouped.loop))
                    self._groups[(g.op, grouped.loop)] = grouped.count
                    self._fixed.append((g.op, grouped.group))
                else:
                    self._fixed += [(g.op, d) for d in e.used_dims()]
                    self._fixed.append((o.buffer, axis))
        for inner in g.body.ops:
            if isinstance(inner, linalg.ops.IndexOp):
                self._fixed.append((g.op, inner.dim.value.data))
            elif isinstance(inner, memref.LoadOp | memref.StoreOp):
                self._fixed += [(inner.memref, a) for a in range(len(shape_of(inner.memref.type)))]

    def classes(self) -> list[AxisClass]:
        """Returns the classes of tied axes and loops."""
        found: dict[object, AxisClass] = {}
        for loop, count in self._groups.items():
            c = found.setdefault(self._union.find(loop), AxisClass(count, group=count))
            c.fixed |= c.group != count
        for node, extent in self.extents.items():
            c = found.setdefault(self._union.find(node), AxisClass(extent))
            whole = isinstance(extent, int) and extent % c.group == 0 if c.group else c.extent == extent
            c.fixed |= not whole
            if isinstance(node[0], linalg.ops.GenericOp):
                c.loops.add(node)
                c.reduces |= node in self._reducing
            else:
                c.axes.add(node)
        for node in self._fixed:
            found[self._union.find(node)].fixed = True
        for c in found.values():
            c.fixed |= isinstance(c.extent, Size)  # blocks of an open extent would end anywhere
        return list(found.values())


@record(frozen=True)
class GroupIndex:
    """The index ``group * count + loop`` of two loops, by number; the second has ``count`` iterations."""

    group: int
    count: int
    loop: int


def group_index(e: AffineExpr, extents: tuple[int, ...]) -> GroupIndex | None:
    """Returns ``e`` over loops of ``extents`` as an index by groups; None if it is none."""
    if not isinstance(e, AffineBinaryOpExpr) or e.kind is not AffineBinaryOpKind.Add:
        return None
    for scaled, loop in ((e.lhs, e.rhs), (e.rhs, e.lhs)):
        if not isinstance(loop, AffineDimExpr) or not isinstance(scaled, AffineBinaryOpExpr):
            continue
        dim, count = scaled.lhs, scaled.rhs
        if scaled.kind is not AffineBinaryOpKind.Mul or not isinstance(dim, AffineDimExpr) or dim == loop:
            continue
        if isinstance(count, AffineConstantExpr) and count.value == extents[loop.position]:
            return GroupIndex(dim.position, count.value, loop.position)
    return None


def class_of(classes: list[AxisClass], buffer: SSAValue, axis: int) -> AxisClass | None:
    """Returns the class of one axis if it can be cut, else None."""
    return next((c for c in classes if (buffer, axis) in c.axes and not c.fixed), None)
