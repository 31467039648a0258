"""Builds allocation operations without xdsl's constructors, which inspect each operand and take ten times as long."""

from __future__ import annotations

from xdsl.dialects import bufferization, memref
from xdsl.ir import Attribute

from landbridge.ir.segments import OPERAND_SEGMENTS, segments


def buffer_alloc(ty: Attribute) -> memref.AllocOp:
    """Returns an operation that allocates memory of the memref type ``ty``."""
    return memref.AllocOp.create(result_types=[ty], properties={OPERAND_SEGMENTS: segments(0, 0)})


def tensor_alloc(ty: Attribute) -> bufferization.AllocTensorOp:
    """Returns an operation that allocates a destination of the tensor type ``ty``."""
    return bufferization.AllocTensorOp.create(result_types=[ty], properties={OPERAND_SEGMENTS: segments(0, 0, 0)})
