"""Rewrite a PrimFunc for blocked operands: each cut loop becomes an outer and an inner one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith, func, linalg, memref
from xdsl.dialects.builtin import AffineMapAttr, FunctionType, MemRefType
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from landbridge.analysis.axis_classes import AxisClass
from landbridge.ir.attributes import ints, mark_prim, set_loop_extents, set_tile_bounds
from landbridge.ir.graph_ops import packed_shape
from landbridge.ir.prim_ops import PadOp
from landbridge.ir.stages import PrimView, view_generic
from landbridge.ir.types import shape_of


@dataclass(frozen=True)
class Layout:
    """The physical form of one operand: ``order`` permutes its axes, then ``axes`` are cut into ``tiles``."""

    order: tuple[int, ...]
    axes: tuple[int, ...]
    tiles: tuple[int, ...]


def layout_of(buffer: SSAValue, cut: Sequence[AxisClass], tile: int, first: AxisClass | None = None) -> Layout | None:
    """How ``buffer`` is blocked by the classes ``cut``; the axis of ``first`` moves to the front. None: it is not."""
    rank = len(shape_of(buffer.type))
    order = list(range(rank))
    lead = first.axis_of(buffer) if first is not None else None
    if lead:
        order.remove(lead)
        order.insert(0, lead)
    axes = [order.index(a) for c in cut if (a := c.axis_of(buffer)) is not None]
    return Layout(tuple(order), tuple(axes), (tile,) * len(axes)) if axes else None


def split_prim(
    prim: PrimView, name: str, cut: Sequence[AxisClass], tile: int, layouts: Mapping[SSAValue, Layout]
) -> func.FuncOp:
    """A PrimFunc that does the same on the physical ``layouts`` of its buffers; buffers without one stay plain.

    Only stages that touch a blocked buffer are cut. Inner loops come last, in the order of ``cut``.
    """
    old = prim.function.body.block
    block = Block(arg_types=[_type(a, layouts.get(a)) for a in old.args])
    env: dict[SSAValue, SSAValue] = dict(zip(old.args, block.args, strict=True))
    for op in old.ops:
        if isinstance(op, memref.AllocOp):
            new = memref.AllocOp([], [], _type(op.memref, layouts.get(op.memref)))
            env[op.memref] = new.memref
            block.add_op(new)
        elif isinstance(op, PadOp):
            layout = layouts.get(op.source)
            low = ints(op.low)
            if layout is not None:
                low = (*(low[i] for i in layout.order), *(0 for _ in layout.tiles))
            block.add_op(PadOp(env[op.source], env[op.destination], low, op.value))
        elif isinstance(op, linalg.ops.GenericOp):
            block.add_op(_generic(op, env, cut, tile, layouts))
        elif isinstance(op, arith.ConstantOp | linalg.ops.FillOp):
            block.add_op(op.clone(env))
    block.add_op(func.ReturnOp())
    function = func.FuncOp(name, FunctionType.from_lists(list(block.arg_types), []), Region(block))
    mark_prim(function)
    return function


def _type(buffer: SSAValue, layout: Layout | None) -> MemRefType[Any]:
    ty = buffer.type
    assert isinstance(ty, MemRefType)
    if layout is None:
        return ty
    shape = [shape_of(ty)[i] for i in layout.order]
    return MemRefType(ty.element_type, packed_shape(shape, layout.axes, layout.tiles), ty.layout, ty.memory_space)


def _generic(
    op: linalg.ops.GenericOp,
    env: Mapping[SSAValue, SSAValue],
    cut: Sequence[AxisClass],
    tile: int,
    layouts: Mapping[SSAValue, Layout],
) -> linalg.ops.GenericOp:
    g = view_generic(op)
    blocked = [o for o in (*g.ins, *g.outs) if o.buffer in layouts]
    splits: list[int] = []
    for c in cut:
        loops = [d for o, d in c.loops if o is op]
        if loops and any(c.axis_of(o.buffer) is not None for o in blocked):
            splits += loops
    dims = len(g.extents)
    inner = {d: dims + i for i, d in enumerate(splits)}
    total = dims + len(splits)
    whole = {d: AffineExpr.dimension(d) * tile + AffineExpr.dimension(i) for d, i in inner.items()}
    maps = []
    for o in (*g.ins, *g.outs):
        layout = layouts.get(o.buffer)
        exprs = list(o.map.results)
        if layout is None:
            replaced = [whole.get(d, AffineExpr.dimension(d)) for d in range(dims)]
            exprs = [e.replace_dims_and_symbols(replaced, []) for e in exprs]
        else:
            exprs = [exprs[i] for i in layout.order]
            tiles = []
            for c in cut:
                axis = c.axis_of(o.buffer)
                if axis is not None:
                    d = o.map.results[axis]
                    tiles.append(AffineExpr.dimension(inner[d.position]))  # type: ignore[attr-defined]
            exprs += tiles
        maps.append(AffineMapAttr(AffineMap(total, 0, tuple(exprs))))
    kinds = {"p": IteratorTypeAttr.parallel(), "r": IteratorTypeAttr.reduction()}
    iterators = [*g.iterators, *(g.iterators[d] for d in splits)]
    extents = [-(-e // tile) if d in inner else e for d, e in enumerate(g.extents)] + [tile] * len(splits)
    new = linalg.ops.GenericOp(
        [env[o.buffer] for o in g.ins],
        [env[o.buffer] for o in g.outs],
        op.body.clone(),
        maps,
        [kinds[k] for k in iterators],
    )
    set_loop_extents(new, extents)
    ragged = [(d, i, tile, g.extents[d]) for d, i in inner.items() if g.extents[d] % tile]
    if ragged:
        set_tile_bounds(new, ragged)
    return new
