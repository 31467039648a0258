"""Finds sums of products that a kernel needs rounded twice."""

from __future__ import annotations

from xdsl.dialects import arith, func
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation

from landbridge.ir.traversal import all_operations


def rounds_separately(function: func.FuncOp) -> bool:
    """Returns whether ``function`` adds a product to something and both must be rounded."""
    return any(
        isinstance(operand.owner, arith.MulfOp) and not (_may_contract(op) and _may_contract(operand.owner))
        for op in all_operations(function)
        if isinstance(op, arith.AddfOp | arith.SubfOp)
        for operand in op.operands
    )


def _may_contract(op: Operation) -> bool:
    flags = op.properties.get("fastmath")
    return isinstance(flags, FastMathFlagsAttr) and FastMathFlag.ALLOW_CONTRACT in flags.data
