"""A PrimFunc lowered for its target."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Block, Region, SSAValue

from landbridge.analysis.verify_accesses import verify_accesses
from landbridge.ir.attributes import is_checked, is_in_place, mark_checked, mark_in_place, set_task_count
from landbridge.ir.stages import view_prim
from landbridge.passes.lower.checked import guard_accesses
from landbridge.passes.lower.code import INDEX, Code
from landbridge.passes.lower.grid import lower_grid
from landbridge.passes.lower.loops import lower_loops
from landbridge.passes.lower.nest import build_nests
from landbridge.passes.lower.row_memory import lowered_type
from landbridge.passes.lower.schedule import Machine
from landbridge.passes.lower.tasks import emit_tasks
from landbridge.targets import Target
from landbridge.targets.grid import grid_limits


def lowering_for(target: Target) -> Callable[[func.FuncOp], func.FuncOp]:
    """What turns a PrimFunc into the form that the code generator of ``target`` prints.

    Every access of it is proved, or, where the PrimFunc has a report, tested as it runs.
    """
    limits = grid_limits(target)
    lower_one: Callable[[func.FuncOp], func.FuncOp]
    if limits is not None:
        lower_one = partial(lower_grid, limits=limits)
    elif target.form == "loops":
        lower_one = lower_loops
    else:
        lower_one = partial(lower_prim, machine=machine_of(target))

    def lowering(function: func.FuncOp) -> func.FuncOp:
        lowered = lower_one(function)
        if is_checked(function):
            guard_accesses(lowered)
            mark_checked(lowered)
        else:
            verify_accesses(lowered)
        return lowered

    return lowering


def machine_of(target: Target) -> Machine:
    """What schedules need to know of a CPU target."""
    return Machine(target.vector_bits // 8, target.vector_registers)


def lower_prim(function: func.FuncOp, machine: Machine) -> func.FuncOp:
    """One PrimFunc in lowered form."""
    prim = view_prim(function)
    arguments = list(function.body.block.args)
    block = Block(arg_types=[*(lowered_type(a.type) for a in arguments), INDEX, INDEX])
    code = Code(block)
    buffers: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=False))
    begin, end = block.args[-2], block.args[-1]
    nests = [nest for nest in build_nests(prim) if not nest.is_empty]
    tasks = emit_tasks(code, prim, nests, machine, buffers, begin, end)
    block.add_op(func.ReturnOp())
    code.finish()
    lowered = func.FuncOp(function.sym_name.data, FunctionType.from_lists(list(block.arg_types), []), Region(block))
    set_task_count(lowered, tasks)
    if is_in_place(function):
        mark_in_place(lowered)
    return lowered
