"""Decides which tiles compute the stages after a reduction in a loop over rows, instead of once for each row.

The sums of a tile are in registers, whose numbers are part of the code, so that the stages after them are repeated for
each sum. Long ones (those of quantized networks, or with a function such as exp) are then most of the code, and most of
what lowering and LLVM take. There the sums pass through memory, which costs a run one store and one load for each.
"""

from __future__ import annotations

from xdsl.dialects import arith, linalg

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.cost import UNROLLING
from landbridge.passes.lower.image_memory import is_image
from landbridge.passes.lower.lane_walk import Walk
from landbridge.passes.lower.nest import Nest, takes_many
from landbridge.passes.lower.operands import Operands, Tile
from landbridge.passes.lower.schedule import Schedule

_NO_CODE = (arith.ConstantOp, linalg.ops.YieldOp)


def rolls_rows(nest: Nest, sched: Schedule, operands: Operands, t: Tile) -> bool:
    """Returns whether the rows of ``t`` are emitted as a loop: it pays, and every access can follow a row that is known
    at run time only.
    """
    if nest.reduction is None or sched.lane is None or sched.horizontal or sched.m_dim in (None, sched.lane):
        return False
    if t.m_size < 2 * rows_together(t) or _operations(nest) * t.m_size * t.n_size < UNROLLING.operations_after_sums:
        return False
    stages = [stage for stage in nest.stages if not stage.reduces]
    reads = [read for stage in stages for read in stage.reads if isinstance(read, ElementAccess)]
    writes = [w for stage in nest.stages for w, stored in zip(stage.writes, stage.stored, strict=True) if stored]
    return all(_follows(operands, access) for access in (*reads, *writes))


def rows_together(t: Tile) -> int:
    """Returns how many rows of ``t`` an iteration computes."""
    return -(-UNROLLING.vectors_after_sums // t.n_size)


def _operations(nest: Nest) -> int:
    """Returns about how many operations the stages after the reduction take for each sum."""
    ops = [op for stage in nest.stages if not stage.reduces for op in stage.body.ops if not isinstance(op, _NO_CODE)]
    return sum(UNROLLING.operations_of_a_function if takes_many(op) else 1 for op in ops)


def _follows(operands: Operands, access: ElementAccess) -> bool:
    """Returns whether ``access`` needs neither the number of its row in the tile nor those of the other rows."""
    is_plain = not access.guards and not is_image(operands.buffers[access.buffer].type)
    return is_plain and operands.walk(access) is not Walk.TRANSPOSED
