"""Rewrites a PrimFunc for blocked operands: each cut loop becomes an outer and an inner one."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith, func, linalg, memref
from xdsl.dialects.builtin import AffineMapAttr, FunctionType, MemRefType
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from landbridge.analysis.axis_classes import group_index
from landbridge.ir.allocations import buffer_alloc
from landbridge.ir.kernel_attributes import mark_prim, set_loop_extents, set_tile_bounds
from landbridge.ir.plain_attributes import ints
from landbridge.ir.prim_ops import GenericOp, PadOp
from landbridge.ir.stages import Generic, Operand, PrimView, view_generic
from landbridge.ir.types import AnyMemRef
from landbridge.passes.pack.layout import Layout
from landbridge.passes.pack.rules import Blocking


def split_prim(prim: PrimView, name: str, blocking: Blocking) -> func.FuncOp:
    """Returns a PrimFunc that does the same on the physical layouts of its buffers; buffers without one stay plain.

    Only stages that use a blocked buffer are cut. Inner loops come last, in the order of ``blocking.cut``.
    """
    old, layouts = prim.function.body.block, blocking.layouts
    block = Block(arg_types=[_type(a, layouts.get(a)) for a in old.args])
    env: dict[SSAValue, SSAValue] = dict(zip(old.args, block.args, strict=True))
    for op in old.ops:
        if isinstance(op, memref.AllocOp):
            new = buffer_alloc(_type(op.memref, layouts.get(op.memref)))
            env[op.memref] = new.memref
            block.add_op(new)
        elif isinstance(op, PadOp):
            layout = layouts.get(op.source)
            low = ints(op.low)
            if layout is not None:
                low = (*(low[i] for i in layout.order), *(0 for _ in layout.tiles))
            block.add_op(PadOp(env[op.source], env[op.destination], low, op.value))
        elif isinstance(op, linalg.ops.GenericOp):
            block.add_op(_split_generic(op, env, blocking))
        elif isinstance(op, arith.ConstantOp | linalg.ops.FillOp):
            block.add_op(op.clone(env))
    block.add_op(func.ReturnOp.create())
    function = func.FuncOp(name, FunctionType.from_lists(list(block.arg_types), []), Region(block))
    mark_prim(function)
    return function


def _type(buffer: SSAValue, layout: Layout | None) -> AnyMemRef:
    ty = buffer.type
    assert isinstance(ty, MemRefType)
    return ty if layout is None else layout.memref(ty)


def _split_generic(
    op: linalg.ops.GenericOp, env: Mapping[SSAValue, SSAValue], blocking: Blocking
) -> linalg.ops.GenericOp:
    g, tile = view_generic(op), blocking.tile
    inner = {d: len(g.extents) + i for i, d in enumerate(_cut_loops(g, blocking))}
    new = GenericOp.over(
        [env[o.buffer] for o in g.ins],
        [env[o.buffer] for o in g.outs],
        op.body.clone(),
        [AffineMapAttr(_split_map(o, g.extents, inner, blocking)) for o in (*g.ins, *g.outs)],
        [*op.iterator_types.data, *(op.iterator_types.data[d] for d in inner)],
    )
    set_loop_extents(new, [-(-e // tile) if d in inner else e for d, e in enumerate(g.extents)] + [tile] * len(inner))
    ragged = [(d, i, tile, g.extents[d]) for d, i in inner.items() if g.extents[d] % tile]
    if ragged:
        set_tile_bounds(new, ragged)
    return new


def _cut_loops(g: Generic, blocking: Blocking) -> list[int]:
    """Returns the loops that become two each."""
    blocked = [o for o in (*g.ins, *g.outs) if o.buffer in blocking.layouts]
    touched = [c for c in blocking.cut if any(c.axis_of(o.buffer) is not None for o in blocked)]
    return [d for c in touched for op, d in c.loops if op is g.op]


def _split_map(o: Operand, extents: tuple[int, ...], inner: Mapping[int, int], blocking: Blocking) -> AffineMap:
    """Returns how the split loops access an operand; ``inner`` maps each cut loop, of ``extents``, to its inner
    loop."""
    dims, layout = len(extents), blocking.layouts.get(o.buffer)
    if layout is None:
        whole = [AffineExpr.dimension(d) for d in range(dims)]
        for d, i in inner.items():
            whole[d] = whole[d] * blocking.tile + AffineExpr.dimension(i)
        return o.map.replace_dims_and_symbols(whole, [], dims + len(inner), 0)
    results, within = list(o.map.results), []
    for c in blocking.cut:
        axis = c.axis_of(o.buffer)
        if axis is not None:
            loop = results[axis]
            grouped = group_index(loop, extents)
            if grouped is not None:
                first = AffineExpr.dimension(grouped.group) * (grouped.count // blocking.tile)
                results[axis], loop = first + AffineExpr.dimension(grouped.loop), AffineExpr.dimension(grouped.loop)
            assert isinstance(loop, AffineDimExpr)  # an axis of a cut class is indexed by a loop itself, or by groups
            within.append(AffineExpr.dimension(inner[loop.position]))
    exprs = [*(results[i] for i in layout.order), *within]
    return AffineMap(dims + len(inner), 0, tuple(exprs))
