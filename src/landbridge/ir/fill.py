"""Creates ``linalg.fill`` so that threads may do so at once."""

from __future__ import annotations

from xdsl.dialects import linalg
from xdsl.ir import Block, Region, SSAValue


def fill(value: SSAValue, target: SSAValue) -> linalg.ops.FillOp:
    """Returns the operation that writes ``value``, a scalar, to all elements of ``target``, a memref.

    The constructor of xDSL builds the region by ``implicit_region``, which replaces ``Operation.__post_init__`` for all
    threads: of two at once each would insert its operations twice.
    """
    block = Block(arg_types=linalg.ops.FillOp.body_arg_types((value, target)))
    block.add_op(linalg.ops.YieldOp(block.args[0]))
    return linalg.ops.FillOp.build(operands=[[value], [target]], result_types=[[]], regions=[Region(block)])
