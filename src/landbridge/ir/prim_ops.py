"""Operations of PrimFunc bodies beside those of xdsl's dialects."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.arith import FloatingPointLikeBinaryOperation
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, attr_def, irdl_op_definition, operand_def

from landbridge.ir.attributes import int_array


@irdl_op_definition
class PadOp(IRDLOperation):
    """``destination`` = ``source`` with ``low[i]`` elements of ``value`` before it along axis i, and as many after
    it as the destination's shape leaves. Lowering folds it into the reads of its one consumer where it can."""

    name = "lb.pad"
    low = attr_def(ArrayAttr[IntegerAttr])
    value = attr_def(Attribute)
    source = operand_def()
    destination = operand_def()

    def __init__(self, source: SSAValue, destination: SSAValue, low: Sequence[int], value: Attribute) -> None:
        super().__init__(operands=[source, destination], attributes={"low": int_array(low), "value": value})


@irdl_op_definition
class RemFOp(FloatingPointLikeBinaryOperation):
    """C's ``fmod``: ``lhs - n * rhs`` without error, n the quotient rounded towards zero. MLIR's, which xdsl lacks."""

    name = "arith.remf"
