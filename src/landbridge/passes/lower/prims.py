"""Lowers a PrimFunc for its target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Block, Region, SSAValue

from landbridge.analysis.verify_accesses import verify_accesses
from landbridge.errors import AccessError, ScheduleError
from landbridge.instruction_sets.registry import instruction_set, is_known
from landbridge.instruction_sets.schedules import Schedules
from landbridge.ir.kernel_attributes import (
    is_checked,
    is_in_place,
    keep_marks,
    mark_checked,
    set_schedule,
    set_sizes,
    set_task_count,
)
from landbridge.ir.stages import view_prim
from landbridge.passes.lower.checked import guard_accesses
from landbridge.passes.lower.code import INDEX, Code
from landbridge.passes.lower.extents_operand import EXTENTS_TYPE, all_sizes, open_extents, set_word_count
from landbridge.passes.lower.forall import emit_forall
from landbridge.passes.lower.iterations import emit_iterations
from landbridge.passes.lower.lengths import compute_sizes
from landbridge.passes.lower.loop_nest_text import loop_nest_text
from landbridge.passes.lower.loops import lower_loops
from landbridge.passes.lower.measured_tiles import MeasuredTiles, TileChoice
from landbridge.passes.lower.nest import build_nests
from landbridge.passes.lower.row_memory import lowered_type
from landbridge.passes.lower.scan import scan_nest
from landbridge.passes.lower.schedule import VectorUnit
from landbridge.passes.lower.schedule_text import schedule_text, weighed_text
from landbridge.passes.lower.scheduled_tree import trees_of
from landbridge.passes.lower.tasks import TaskPlan, emit_tasks
from landbridge.targets import Target
from landbridge.targets.grid import grid_limits
from landbridge.targets.machine import cpu_core


def lowering_for(
    target: Target, tiles: TileChoice | None = None, *, verifies: bool = False
) -> Callable[[func.FuncOp], func.FuncOp]:
    """Returns a function that lowers a PrimFunc to the form that the code generator of ``target`` prints.

    Every access is proved to be inside its buffer. In a PrimFunc with a report, every access is tested at run time
    instead. Kernels have the ``tiles`` that were measured, where there are some. ``verifies``: a schedule that no legal
    loop transformations make raises ScheduleError.
    """
    limits = grid_limits(target)
    lower_one: Callable[[func.FuncOp], func.FuncOp]
    otherwise: Callable[[func.FuncOp], func.FuncOp] | None = None
    if limits is not None:
        from landbridge.passes.lower.grid.schedule import (
            lower_grid,  # a dozen modules, which a compile for a CPU does not need
        )

        lower_one = partial(lower_grid, limits=limits)
        otherwise = partial(lower_one, by_points=True)
    elif target.form == "loops":
        lower_one = lower_loops
    else:
        machine = vector_unit_of(target)

        def lower_tasks(function: func.FuncOp, columns_first: bool = False) -> func.FuncOp:
            measured = None if tiles is None else tiles.measured(function, target)
            return lower_prim(function, machine, columns_first, not target.on_host, verifies, measured)

        lower_one = lower_tasks
        otherwise = partial(lower_tasks, columns_first=True)

    def lowering(function: func.FuncOp) -> func.FuncOp:
        lowered = proved(function)
        compute_sizes(lowered)
        return lowered

    def proved(function: func.FuncOp) -> func.FuncOp:
        lowered = lower_one(function)
        if is_checked(function):
            guard_accesses(lowered)
            mark_checked(lowered)
            return lowered
        try:
            verify_accesses(lowered)
        except AccessError as first:
            if otherwise is None or not all_sizes(function):
                raise
            # Its indices are other quotients of open extents. Only the proof shows which of the two forms has one.
            lowered = otherwise(function)
            try:
                verify_accesses(lowered)
            except AccessError:
                raise first from None
        return lowered

    return lowering


def narrow_is_cheaper(target: Target) -> bool:
    """Returns whether multiplying vectors of half the width may take less time; true if the CPU is not known."""
    schedules = _schedules(target)
    return not _is_timed(target, schedules) or cpu_core(target.mcpu).vector_passes > 1


def _schedules(target: Target) -> Schedules:
    isa = str(target.attrs.get("isa", ""))
    return instruction_set(isa).schedules if is_known(isa) else Schedules()


def _is_timed(target: Target, schedules: Schedules) -> bool:
    return schedules.timed and target.kind == "llvm"


def vector_unit_of(target: Target) -> VectorUnit:
    """Returns the properties of a CPU target that schedules depend on."""
    schedules = _schedules(target)
    timed = _is_timed(target, schedules)
    core = cpu_core(str(target.options.get("mcpu", "")))
    return VectorUnit(
        target.vector_bits // 8,
        target.vector_registers,
        by_lane=target.vector_bits == schedules.lane_bits,
        l1_bytes=target.l1_bytes if schedules.fits_caches else 0,
        l2_bytes=target.l2_bytes if schedules.fits_caches else 0,
        prefetches=timed,
        narrow_is_cheaper=narrow_is_cheaper(target),
        two_passes=timed and core.vector_passes > 1,
        unrolls=timed,
        sums_in_factors=schedules.sums_in_factors,
        core=core,
        unrolled=schedules.unrolled,
    )


def lower_prim(
    function: func.FuncOp,
    machine: VectorUnit,
    columns_first: bool = False,
    is_launched: bool = False,
    verifies: bool = False,
    measured: MeasuredTiles | None = None,
) -> func.FuncOp:
    """Returns one PrimFunc in lowered form; ``columns_first`` as in ``emit_tasks``, ``verifies`` as in
    ``lowering_for``.

    ``is_launched``: a device launches its tasks, so that their number is one of the Sizes that an open function takes.
    ``measured``: the tiles that were measured; nests have the fastest where it is among their candidates.
    """
    if measured is not None:
        machine = replace(machine, tile=measured.fastest)
    prim = view_prim(function)
    arguments = list(function.body.block.args)
    sizes = open_extents(function)
    extents = [EXTENTS_TYPE] if sizes else []
    block = Block(arg_types=[*(lowered_type(a.type) for a in arguments), *extents, INDEX, INDEX])
    code = Code(block, block.args[-3] if extents else None)
    buffers: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=False))
    begin, end = block.args[-2], block.args[-1]
    fold = scan_nest(prim) if prim.forall is None else None
    is_divided = False
    if prim.forall is not None:
        plan = TaskPlan(emit_forall(code, prim, prim.forall, machine.vector_bytes, buffers, begin, end), ())
    elif prim.is_iterated and fold is None:
        plan = emit_iterations(code, prim, machine, buffers, begin, end)
    else:
        nests = [nest for nest in ([fold] if fold else build_nests(prim)) if not nest.is_empty]
        plan = emit_tasks(code, prim, nests, machine, buffers, begin, end, columns_first)
        is_divided = len(nests) == 1
    block.add_op(func.ReturnOp())
    if extents and is_launched:
        code.value(plan.count)
        if not code.words:  # a Call of a device has at least one word where its function takes any
            code.value(sizes[0])
    code.finish()
    if extents:
        set_word_count(block.args[-3], code.words)
    lowered = func.FuncOp(function.sym_name.data, FunctionType.from_lists(list(block.arg_types), []), Region(block))
    set_task_count(lowered, plan.count)
    set_schedule(
        lowered,
        "; ".join(schedule_text(*each) for each in plan.schedules),
        list(dict.fromkeys(text for each in plan.schedules for text in weighed_text(each[1], measured))),
        _loops(plan, is_in_place=is_in_place(function), is_divided=is_divided, verifies=verifies),
    )
    if extents:
        set_sizes(lowered, list(code.words))
    keep_marks(function, lowered)
    return lowered


def _loops(plan: TaskPlan, *, is_in_place: bool, is_divided: bool, verifies: bool) -> str:
    """Returns the loops of a kernel in words. Raises ScheduleError if ``verifies`` and a schedule is not legal."""
    try:
        trees = trees_of(plan.schedules, is_in_place=is_in_place, is_divided=is_divided)
    except ScheduleError as error:
        if verifies:
            raise
        return f"no loop tree: {error}"  # the kernel is what was emitted; a description of it ends no compile
    return "\n".join(loop_nest_text(tree) for tree in trees)
