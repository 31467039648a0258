"""The operations by which reductions combine terms."""

from __future__ import annotations

import math
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from landbridge.ir.new_operation import new_operation
from landbridge.ir.prim_ops import ByteDotOp
from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.nest import Stage, scalar_attr

#: Operations whose terms may be combined in any order.
_REORDERABLE = frozenset(
    [f"arith.{kind}{suffix}" for kind in ("add", "mul") for suffix in "fi"]
    + [f"arith.{kind}{suffix}" for kind in ("max", "min") for suffix in ("imumf", "si", "ui")]
    + ["arith.andi", "arith.ori"]
)


def folds(op: Operation) -> bool:
    """Returns whether ``op`` combines two terms and its terms may be combined in any order."""
    return op.name in _REORDERABLE


def combiner(stage: Stage) -> str | None:
    """Returns the name of the operation that folds a value into the accumulator; None unless there is exactly one."""
    accumulator = stage.body.args[len(stage.reads)]
    uses = list(accumulator.uses)
    result = stage.body.last_op
    if len(uses) != 1 or result is None:
        return None
    op = uses[0].operation
    return op.name if op.name in _REORDERABLE and result.operands[0] is op.results[0] else None


def identity(combine: str, element: Any) -> Attribute:
    """Returns the neutral element of ``combine``."""
    if isinstance(element, IntegerType):
        w = element.width.data
        number = {
            "arith.addi": 0, "arith.muli": 1, "arith.ori": 0, "arith.andi": -1, "arith.maxui": 0,
            "arith.minui": -1, "arith.maxsi": -(1 << (w - 1)), "arith.minsi": (1 << (w - 1)) - 1,
        }[combine]  # fmt: skip
        return IntegerAttr(number, element)
    value = {"arith.addf": 0.0, "arith.mulf": 1.0, "arith.maximumf": -math.inf, "arith.minimumf": math.inf}[combine]
    return FloatAttr(value, element)


def fold(code: Code, main: Stage, a: SSAValue, b: SSAValue) -> SSAValue:
    """Returns two accumulators of ``main``, which has a combiner, combined into one."""
    op = next(iter(main.body.args[len(main.reads)].uses)).operation
    return code.add_op(new_operation(type(op), [a, b], [a.type], op.properties))


def folded_term(main: Stage) -> SSAValue:
    """Returns the value that ``main``, which has a combiner, folds into its accumulator."""
    accumulator = main.body.args[len(main.reads)]
    op = next(iter(accumulator.uses)).operation
    return next(v for v in op.operands if v is not accumulator)


def sums_up(main: Stage) -> bool:
    """Returns whether ``main`` is one sum of floats, which is inexact if many terms are added in one chain."""
    return combiner(main) == "arith.addf" and len(main.writes) == 1


def _widened(value: SSAValue) -> SSAValue:
    """Returns the operand if ``value`` is a conversion to a wider float, which is exact; else ``value`` itself."""
    return value.owner.operands[0] if isinstance(value.owner, arith.ExtFOp) else value


def skips_padding(stage: Stage) -> bool:
    """Returns whether leaving out padded iterations gives the same result as computing them.

    True for ``acc + x``, ``acc + x * w`` with padding 0, and for max and min padded with their identity.
    """
    combine = combiner(stage)
    padded = [r for r in stage.reads if isinstance(r, ElementAccess) and r.guards]
    if combine is None or not padded:
        return combine is not None
    accumulator = stage.body.args[len(stage.reads)]
    op = next(iter(accumulator.uses)).operation
    other = _widened(op.operands[1] if op.operands[0] is accumulator else op.operands[0])
    arguments = dict(zip(stage.body.args, stage.reads, strict=False))
    if other in arguments:
        factors = [other]
    elif combine in ("arith.addf", "arith.addi") and isinstance(other.owner, arith.MulfOp | arith.MuliOp | ByteDotOp):
        factors = [_widened(v) for v in other.owner.operands]
    else:
        return False
    if any(f not in arguments for f in factors):
        return False
    for r in padded:
        assert r.fill is not None
        if scalar_attr(r.fill) != scalar_attr(identity(combine, r.element)):
            return False
    return True
