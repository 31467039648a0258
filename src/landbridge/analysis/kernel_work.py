"""The work of a PrimFunc: arithmetic operations, and bytes that it has to read and write, each once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from xdsl.dialects import arith, func, linalg, memref
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from landbridge.ir.kernel_attributes import tile_bounds
from landbridge.ir.plain_attributes import ints
from landbridge.ir.prim_ops import ByteDotOp, PadOp
from landbridge.ir.stages import Generic, view_generic, view_prim
from landbridge.ir.types import item_bytes, nbytes_of, shape_of
from landbridge.sizes.size import Extent, largest, product, smallest

_ARITHMETIC = (
    arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp,
    arith.MinnumfOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.DivSIOp, arith.DivUIOp, arith.RemSIOp,
    arith.RemUIOp,
)  # fmt: skip

#: The most values of an index along a window that are enumerated.
_MOST_VALUES = 1 << 12


def flops_of(function: func.FuncOp) -> Extent:
    """Returns the arithmetic operations of one call of ``function``.

    A sum, product, quotient, remainder, maximum, minimum and a function such as exp count as one, of floats and of
    integers but not of indices; a dot product of four bytes counts as seven. Padding is not counted, except padding of
    windows whose extents are open or have more than 4096 index values.
    """
    view = view_prim(function)
    pads = {op.destination: op for op in view.stages if isinstance(op, PadOp)}
    total: Extent = 0
    for generic in view.generics():
        points = _points(generic) * _operations(generic.body)
        inside = _inside(generic, pads)
        total += points * inside.numerator // inside.denominator
    return total


def bytes_of(function: func.FuncOp) -> Extent:
    """Returns the bytes of operands that one call reads or writes, each counted once however often it is used.

    Of an operand that is only partly used, such as a table of embeddings, only the used bytes count.
    """
    total: Extent = 0
    stages = view_prim(function).stages
    for argument in function.body.block.args:
        if not isinstance(argument.type, MemRefType):
            continue
        whole, reached = nbytes_of(argument.type), _reached(argument, stages)
        total += whole if reached is None else smallest(whole, reached * item_bytes(argument.type))
    return total


def _points(generic: Generic) -> Extent:
    """Returns how often the body of ``generic`` runs, without the iterations that compute only padding of blocks."""
    left = list(generic.extents)
    for outer, inner, _, extent in tile_bounds(generic.op):
        left[outer], left[inner] = extent, 1
    return product(left)


def _inside(generic: Generic, pads: Mapping[SSAValue, PadOp]) -> Fraction:
    """Returns the share of iterations in which the first padded operand of ``generic`` is read inside of the padding.

    ``pads`` maps the destination of each PadOp to it. Returns 1 if no operand is padded; an axis whose share cannot be
    computed counts as 1.
    """
    for operand in generic.ins:
        pad = pads.get(operand.buffer)
        if pad is not None:
            share = Fraction(1)
            axes = zip(operand.map.results, ints(pad.low), shape_of(pad.source.type), strict=True)
            for index, low, extent in axes:
                share *= _share(index, generic.extents, low, extent)
            return share
    return Fraction(1)


@lru_cache(maxsize=1024)
def _share(index: AffineExpr, extents: tuple[Extent, ...], low: Extent, extent: Extent) -> Fraction:
    """Returns the share of the index values of ``index``, over loops of ``extents``, from ``low`` to ``low + extent``
    (exclusive).

    Returns 1 if an extent is open or if there are too many values.
    """
    dims = sorted(index.used_dims())
    count = math.prod(number for number in (extents[d] for d in dims) if isinstance(number, int))
    elements = [low, extent, *(extents[d] for d in dims)]
    if not all(isinstance(number, int) for number in elements) or not 0 < count <= _MOST_VALUES:
        return Fraction(1)
    at: list[Any] = [0] * len(extents)
    for n, d in enumerate(dims):
        at[d] = np.arange(int(extents[d])).reshape([-1 if n == m else 1 for m in range(len(dims))])
    values = np.asarray(index.eval(at, []))  # of all choices at once: one after another takes ten times as long
    return Fraction(int(np.count_nonzero((values >= low) & (values < low + extent))), count)


def _operations(body: Block) -> int:
    return sum(map(_count, body.ops))


def _count(op: Operation) -> int:
    if isinstance(op, ByteDotOp):
        return 7  # four products and three sums
    if op.name.startswith("math."):
        return 1
    return isinstance(op, _ARITHMETIC) and not isinstance(op.results[0].type, IndexType)


def _reached(buffer: SSAValue, stages: tuple[Operation, ...]) -> Extent | None:
    """Returns the largest number of elements of ``buffer`` that one stage uses, by the loops that its index depends on.

    Returns None if that is not known, so that all elements count.
    """
    most: Extent = 0
    for use in buffer.uses:
        op = use.operation
        if isinstance(op, memref.LoadOp):
            generic = op.parent_op()
            if not isinstance(generic, linalg.ops.GenericOp):
                return None
            most = largest(most, product(view_generic(generic).extents))
        elif isinstance(op, linalg.ops.GenericOp):
            view = view_generic(op)
            for operand in (*view.ins, *view.outs):
                if operand.buffer is buffer:
                    used = {d for result in operand.map.results for d in result.used_dims()}
                    most = largest(most, product(e for d, e in enumerate(view.extents) if d in used))
        else:
            return None
    return most
