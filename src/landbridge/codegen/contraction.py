"""Contraction: finds products that become one fused operation with the addition that reads them."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation

from landbridge.codegen.printing import allows


def may_contract(op: Operation) -> bool:
    """Returns whether the operation may be rounded together with another."""
    return allows(op, FastMathFlag.ALLOW_CONTRACT)


def fused_product(op: Operation) -> arith.MulfOp | None:
    """Returns the product, read only by the addition ``op``, that is fused with it; None where there is none."""
    if not isinstance(op, arith.AddfOp) or not may_contract(op):
        return None
    for operand in op.operands:
        owner = operand.owner
        if (
            isinstance(owner, arith.MulfOp)
            and operand.has_one_use()
            and may_contract(owner)
            and owner.parent is op.parent
            and getattr(operand.type, "element_type", operand.type).name in ("f32", "f64")
        ):
            return owner
    return None


def is_fused(op: Operation) -> bool:
    """Returns whether ``op`` is a product that is fused with its only reader."""
    if not isinstance(op, arith.MulfOp) or not op.result.has_one_use():
        return False
    user = next(iter(op.result.uses)).operation
    return user.parent is op.parent and fused_product(user) is op
