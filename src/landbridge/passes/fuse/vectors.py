"""Decides whether a stage can be vectorized: lanes come from a loop along which every access has stride 0 or 1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import arith, linalg, memref
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from landbridge.analysis.accesses import follows, input_count
from landbridge.ir.stages import Generic, Operand, view_generic
from landbridge.passes.lower.access import linear_index
from landbridge.passes.lower.row_memory import index_strides

#: The highest cost of a body that may run on scalars: the access that prevents vectors costs as much.
LIGHT = 8

_COSTS = {"arith.divf": 4, "arith.divsi": 8, "arith.divui": 8, "arith.remsi": 8, "arith.remui": 8, "math.sqrt": 4}


def computes_addresses(stage: Generic) -> bool:
    """Returns whether the body loads at computed indices or uses loop indices as values: it runs on scalars."""
    return any(type(op) in (memref.LoadOp, linalg.ops.IndexOp) for op in stage.body.ops)


def keeps_vectors(producer: Generic, stage: Generic, through: Sequence[Operand], budget: int) -> bool:
    """Returns whether vectors are still used after ``producer`` is inlined into ``stage`` in place of the operands
    ``through``.

    If the result would run on scalars, that is accepted when the cost of the stages that run on vectors today is at
    most ``budget``; a stage after a reduction must stay on vectors.
    """
    others = [(o.buffer, o.map) for o in stage.ins if o not in through]
    inner = [(p.buffer, composed(p.map, o.map)) for o in through for p in producer.ins]
    addresses = computes_addresses(producer) or computes_addresses(stage)
    followed = not computes_addresses(producer) and all(follows(m) for _, m in inner)
    if _after_reduction(stage):
        return followed  # it shares the loops of the reduction, which must stay vectors
    if not addresses and _has_lane(stage, [*others, *inner]):
        return True
    return sum(_cost(s) for s in (producer, stage) if runs_on_vectors(s)) <= budget


def is_light(stage: Generic) -> bool:
    """Returns whether the body costs little even on scalars."""
    return _cost(stage) <= LIGHT


def runs_on_vectors(stage: Generic) -> bool:
    """Returns whether an all-parallel stage has a loop that can be its lanes."""
    return not computes_addresses(stage) and _has_lane(stage, ((o.buffer, o.map) for o in stage.ins))


def composed(inner: AffineMap, outer: AffineMap) -> AffineMap:
    """Returns ``inner`` applied to the results of ``outer``."""
    return inner.replace_dims_and_symbols(outer.results, (), outer.num_dims, 0)


def _has_lane(stage: Generic, accesses: Iterable[tuple[SSAValue, AffineMap]]) -> bool:
    found = list(accesses)
    if all(follows(m) for _, m in found):
        return True
    indices = [linear_index(m, index_strides(b.type)) for b, m in found]
    written = [linear_index(o.map, index_strides(o.buffer.type)) for o in stage.outs]
    return any(
        extent != 1
        and all(w.coeff(d) == 1 for w in written)
        and all(i.coeff(d) in (0, 1) and not i.nonlinear_in(d) for i in indices)
        for d, extent in enumerate(stage.extents)
    )


def _after_reduction(stage: Generic) -> bool:
    """Returns whether ``stage`` reads a result of an earlier reduction of its PrimFunc."""
    for operand in stage.ins:
        for use in operand.buffer.uses:
            op = use.operation
            if isinstance(op, linalg.ops.GenericOp) and use.index >= input_count(op) and view_generic(op).reduces:
                return True
    return False


def _cost(stage: Generic) -> int:
    """Returns an estimate of the cycles per element on scalars."""
    total = 0
    for op in stage.body.ops:
        if op.name.startswith("math."):
            total += _COSTS.get(op.name, 16)
        elif not isinstance(op, arith.ConstantOp | linalg.ops.YieldOp):
            total += _COSTS.get(op.name, 1)
    return total
