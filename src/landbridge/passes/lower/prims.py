"""Lowers a PrimFunc for its target."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, MemRefType, i64
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.analysis.verify_accesses import verify_accesses
from landbridge.errors import AccessError
from landbridge.ir.kernel_attributes import (
    is_checked,
    keep_marks,
    mark_checked,
    set_schedule,
    set_sizes,
    set_task_count,
)
from landbridge.ir.prim_ops import SizeOp
from landbridge.ir.stages import view_prim
from landbridge.ir.types import GLOBAL, shape_of
from landbridge.passes.lower.checked import guard_accesses
from landbridge.passes.lower.code import INDEX, Code
from landbridge.passes.lower.forall import emit_forall
from landbridge.passes.lower.iterations import emit_iterations
from landbridge.passes.lower.loops import lower_loops
from landbridge.passes.lower.nest import build_nests
from landbridge.passes.lower.row_memory import lowered_type
from landbridge.passes.lower.scan import scan_nest
from landbridge.passes.lower.schedule import VectorUnit
from landbridge.passes.lower.schedule_text import schedule_text, weighed_text
from landbridge.passes.lower.tasks import TaskPlan, emit_tasks
from landbridge.sizes.size import Size
from landbridge.targets import Target
from landbridge.targets.grid import grid_limits


def lowering_for(target: Target) -> Callable[[func.FuncOp], func.FuncOp]:
    """Returns a function that lowers a PrimFunc to the form that the code generator of ``target`` prints.

    Every access is proved to be inside its buffer. In a PrimFunc with a report, every access is tested at run time
    instead.
    """
    limits = grid_limits(target)
    lower_one: Callable[[func.FuncOp], func.FuncOp]
    otherwise: Callable[[func.FuncOp], func.FuncOp] | None = None
    if limits is not None:
        from landbridge.passes.lower.grid.schedule import (
            lower_grid,  # a dozen modules, which a compile for a CPU does not need
        )

        lower_one = partial(lower_grid, limits=limits)
    elif target.form == "loops":
        lower_one = lower_loops
    else:
        lower_one = partial(lower_prim, machine=vector_unit_of(target))
        otherwise = partial(lower_one, columns_first=True)

    def lowering(function: func.FuncOp) -> func.FuncOp:
        lowered = lower_one(function)
        if is_checked(function):
            guard_accesses(lowered)
            mark_checked(lowered)
            return lowered
        try:
            verify_accesses(lowered)
        except AccessError:
            if otherwise is None or not _is_open(function):
                raise
            lowered = otherwise(function)  # its indices are other quotients of open extents
            verify_accesses(lowered)
        return lowered

    return lowering


#: x86-64 CPUs that execute a vector of 64 bytes as two halves (AMD, "Software Optimization Guide" for family 19h).
_TWO_PASSES = frozenset(("znver4",))


def narrow_is_cheaper(target: Target) -> bool:
    """Returns whether multiplying vectors of half the width may take less time; true if the CPU is not known."""
    return not _is_timed(target) or target.mcpu in _TWO_PASSES


def _is_timed(target: Target) -> bool:
    return target.attrs.get("isa") == "x86_64" and target.kind == "llvm"


def vector_unit_of(target: Target) -> VectorUnit:
    """Returns the properties of a CPU target that schedules depend on."""
    by_lane = target.attrs.get("isa") == "aarch64" and target.vector_bits == 128
    measured = target.attrs.get("isa") == "x86_64"
    timed = _is_timed(target)
    return VectorUnit(
        target.vector_bits // 8,
        target.vector_registers,
        by_lane=by_lane,
        l1_bytes=target.l1_bytes if measured else 0,
        l2_bytes=target.l2_bytes if measured else 0,
        prefetches=timed,
        narrow_is_cheaper=narrow_is_cheaper(target),
        two_passes=timed and target.mcpu in _TWO_PASSES,
        unrolls=timed,
    )


#: The type of the operand that holds Sizes, until their number is known.
EXTENTS_TYPE = MemRefType(i64, [0], memory_space=GLOBAL)


def _is_open(function: func.FuncOp) -> bool:
    """Returns whether a PrimFunc depends on sizes that are known only once the input shapes are."""
    operands = (e for a in function.body.block.args for e in shape_of(a.type))
    view = view_prim(function)
    loops = [e for g in view.generics() for e in g.extents]
    if view.forall is not None:
        loops.append(view.forall.iterations)
    bodies = (op for op in function.walk() if isinstance(op, SizeOp))
    return any(isinstance(e, Size) for e in (*operands, *loops)) or any(True for _ in bodies)


def lower_prim(function: func.FuncOp, machine: VectorUnit, columns_first: bool = False) -> func.FuncOp:
    """Returns one PrimFunc in lowered form; ``columns_first`` as in ``emit_tasks``."""
    prim = view_prim(function)
    arguments = list(function.body.block.args)
    extents = [EXTENTS_TYPE] if _is_open(function) else []
    block = Block(arg_types=[*(lowered_type(a.type) for a in arguments), *extents, INDEX, INDEX])
    code = Code(block, block.args[-3] if extents else None)
    buffers: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=False))
    begin, end = block.args[-2], block.args[-1]
    fold = scan_nest(prim) if prim.forall is None else None
    if prim.forall is not None:
        plan = TaskPlan(emit_forall(code, prim, prim.forall, machine.vector_bytes, buffers, begin, end), ())
    elif prim.is_iterated and fold is None:
        plan = emit_iterations(code, prim, machine, buffers, begin, end)
    else:
        nests = [nest for nest in ([fold] if fold else build_nests(prim)) if not nest.is_empty]
        plan = emit_tasks(code, prim, nests, machine, buffers, begin, end, columns_first)
    block.add_op(func.ReturnOp())
    code.finish()
    if extents:
        words = MemRefType(i64, [len(code.sizes)], memory_space=GLOBAL)
        Rewriter.replace_value_with_new_type(block.args[-3], words)
    lowered = func.FuncOp(function.sym_name.data, FunctionType.from_lists(list(block.arg_types), []), Region(block))
    set_task_count(lowered, plan.count)
    set_schedule(
        lowered,
        "; ".join(schedule_text(*each) for each in plan.schedules),
        list(dict.fromkeys(text for each in plan.schedules for text in weighed_text(*each, machine))),
    )
    if extents:
        set_sizes(lowered, list(code.sizes))
    keep_marks(function, lowered)
    return lowered
