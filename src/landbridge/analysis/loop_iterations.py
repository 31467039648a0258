"""Counts the iterations of loops that a work-item makes: drivers may end its loops after a number of them, in silence.

The count is a bound: of two branches both are counted, as neighbouring work-items may take them in step.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith, func, gpu, memref, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, OpResult, SSAValue

from landbridge.ir.kernel_attributes import has_sizes, sizes_of
from landbridge.ir.length_ops import SizedByOp, reserved
from landbridge.sizes.size import Extent, ceildiv, largest, smallest


def most_iterations(lowered: func.FuncOp) -> Extent | None:
    """Returns the most iterations of loops that a work-item of one launch of ``lowered`` makes, with one more for each
    loop that ends; None where a loop's number of iterations follows from data.
    """
    block = lowered.body.block
    words = block.args[-1] if has_sizes(lowered) else None
    known = _Extents(words, sizes_of(lowered))
    counts = [_of_block(op.body.block, known) for op in block.ops if isinstance(op, gpu.LaunchOp)]
    found = [count for count in counts if count is not None]
    return largest(*found, 0) if len(found) == len(counts) else None


def _of_block(block: Block, known: _Extents) -> Extent | None:
    total: Extent = 0
    for op in block.ops:
        count: Extent | None = 0
        if isinstance(op, scf.ForOp):
            trips, inside = known.trips(op), _of_block(op.body.block, known)
            count = None if trips is None or inside is None else trips * (inside + 1) + 1
        elif isinstance(op, scf.WhileOp):
            return None
        else:
            count = _sum(_of_block(inner, known) for region in op.regions for inner in region.blocks)
        if count is None:
            return None
        total = total + count
    return total


def _sum(counts: Iterable[Extent | None]) -> Extent | None:
    total: Extent = 0
    for count in counts:
        if count is None:
            return None
        total = total + count
    return total


class _Extents:
    """Bounds of values that are computed from the ``sizes`` of a function, which it loads from ``words``."""

    def __init__(self, words: SSAValue | None, sizes: tuple[Extent, ...]) -> None:
        self._words, self._sizes = words, sizes
        self._found: dict[SSAValue, Extent | None] = {}

    def trips(self, loop: scf.ForOp) -> Extent | None:
        """Returns the most iterations of ``loop``, whose counter is never negative; None where nothing bounds them."""
        step = self.most(loop.step)
        step = step if isinstance(step, int) and step > 0 else 1
        bounds = []
        for end in _ends(loop.ub):
            if (distance := self._beyond(end, loop.lb)) is not None:
                return ceildiv(distance, step)  # of a block: the rest may be shorter
            if (most := self.most(end)) is not None:
                low = self.most(loop.lb) if self._is_exact(loop.lb) else 0
                bounds.append(largest(ceildiv(most - (low or 0), step), 0))
        return smallest(*bounds) if bounds else None

    def _beyond(self, end: SSAValue, start: SSAValue) -> Extent | None:
        """Returns by how much ``end`` is more than ``start``, where it is the sum of that and a known value."""
        op = end.owner
        if isinstance(op, arith.AddiOp):
            for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
                if one is start and self._is_exact(other):
                    return self.most(other)
        return None

    def most(self, value: SSAValue) -> Extent | None:
        """Returns a bound that ``value`` does not exceed, None where none is known."""
        if value not in self._found:
            self._found[value] = self._computed(value)
        return self._found[value]

    def _computed(self, value: SSAValue) -> Extent | None:
        op = value.owner
        if not isinstance(value, OpResult):
            return None
        if isinstance(op, arith.ConstantOp):
            return op.value.value.data if isinstance(op.value, IntegerAttr) else None
        if isinstance(op, arith.IndexCastOp):
            return self.most(op.input)
        if isinstance(op, SizedByOp):
            return reserved(op.size.data)
        if isinstance(op, memref.LoadOp) and op.memref is self._words:
            number = self.most(op.indices[0])
            return self._sizes[number] if isinstance(number, int) else None
        if isinstance(op, arith.AddiOp | arith.MuliOp):
            left, right = self.most(op.lhs), self.most(op.rhs)
            if left is None or right is None:
                return None
            return left + right if isinstance(op, arith.AddiOp) else left * right
        if isinstance(op, arith.MinSIOp):
            ends = [most for each in (op.lhs, op.rhs) if (most := self.most(each)) is not None]
            return smallest(*ends) if ends else None
        return None

    def _is_exact(self, value: SSAValue) -> bool:
        """Returns whether ``value`` is a constant or a Size itself."""
        op = value.owner
        if isinstance(op, arith.IndexCastOp):
            return self._is_exact(op.input)
        return isinstance(op, arith.ConstantOp) or (isinstance(op, memref.LoadOp) and op.memref is self._words)


def _ends(value: SSAValue) -> list[SSAValue]:
    """Returns the values of which ``value`` is the least."""
    op = value.owner
    return [*_ends(op.lhs), *_ends(op.rhs)] if isinstance(op, arith.MinSIOp) else [value]
