"""Lowers PrimFuncs (``linalg`` on memrefs) to the structured form that code generators share.

The kind of the target decides the form. "vectors": a lowered function takes the PrimFunc's memrefs, flat or in rows,
and ``begin, end``, the range of tasks to run; its attribute ``lb.tasks`` is the number of all tasks. "grid": it
contains launches, see ``grid``. "loops": it consists of plain loops, see ``loops``.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from landbridge.ir.kernel_attributes import target_number
from landbridge.ir.limits import check_time
from landbridge.ir.module import IRModule
from landbridge.passes.lower.prims import lower_prim, lowering_for, vector_unit_of
from landbridge.passes.registry import register_pass

__all__ = ["lower", "lower_module", "lower_prim", "lowering_for", "vector_unit_of"]


@register_pass("lower")
def lower(module: IRModule) -> None:
    """Convert every PrimFunc of ``module`` into the structured form that code generators print.

    Raises ScheduleError for a schedule that no legal loop transformations make.
    """
    lowerings = [lowering_for(t, verifies=True) for t in module.targets]
    block = module.op.body.block
    for prim in module.prims().values():
        block.insert_op_before(lowerings[target_number(prim)](prim), prim)
        Rewriter.erase_op(prim)


def lower_module(module: IRModule) -> ModuleOp:
    """Returns a new module with every PrimFunc of ``module`` in lowered form, under its name.

    Raises ScheduleError for a schedule that no legal loop transformations make.
    """
    lowerings = [lowering_for(t, verifies=True) for t in module.targets]
    lowered = []
    for name, prim in module.prims().items():
        check_time(f"kernel {name}")
        lowered.append(lowerings[target_number(prim)](prim))
    return ModuleOp(lowered)
