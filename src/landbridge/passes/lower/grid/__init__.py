"""Lowering for targets with a grid of workgroups: a PrimFunc becomes launches.

A lowered function takes the PrimFunc's memrefs, flattened, and holds ``gpu.launch`` operations, in order, whose shapes
are constants. A ``memref.alloc`` beside them is scratch of the function; one inside them, in the scope ``"local"``, is
shared by the work-items of a workgroup; ``memref.alloca`` is a work-item's own. Accesses are loads and stores of typed
elements at an index, or of vectors, so that printers of logical addressing (SPIR-V) need nothing else.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, IntegerAttr, MemRefType, UnitAttr, i64
from xdsl.ir import Block, Region, SSAValue

from landbridge.ir.stages import PrimView, view_prim
from landbridge.ir.types import element_count, shape_of
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.flat import flat_type
from landbridge.passes.lower.grid.core import task_launch
from landbridge.passes.lower.grid.launch import Launcher
from landbridge.passes.lower.grid.points import point_launch
from landbridge.passes.lower.nest import Nest, build_nests
from landbridge.passes.lower.prefix import shared_prefix
from landbridge.passes.lower.simplify import simplify
from landbridge.target.grid import GridLimits


def lower_grid(function: func.FuncOp, limits: GridLimits) -> func.FuncOp:
    """One PrimFunc as launches. Its attribute ``lb.tasks`` is 1, or 0 when nothing is computed."""
    prim = view_prim(function)
    arguments = list(function.body.block.args)
    block = Block(arg_types=[flat_type(a) for a in arguments])
    code = Code(block)
    launcher = Launcher(code, limits)
    buffers: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=True))
    nests = [nest for nest in build_nests(prim) if not nest.is_empty]
    _launches(launcher, prim, nests, buffers)
    block.add_op(func.ReturnOp())
    code.finish()
    lowered = func.FuncOp(function.sym_name.data, FunctionType.from_lists(list(block.arg_types), []), Region(block))
    lowered.attributes["lb.tasks"] = IntegerAttr(min(launcher.launches, 1), i64)
    if "lb.in_place" in function.attributes:
        lowered.attributes["lb.in_place"] = UnitAttr()
    return lowered


def _launches(launcher: Launcher, prim: PrimView, nests: list[Nest], buffers: dict[SSAValue, SSAValue]) -> None:
    if launcher.limits.core_vectors and (len(nests) == 1 or shared_prefix(nests)):
        task_launch(launcher, prim, nests, buffers)
        return
    _scratch(launcher, prim, nests, buffers)
    for nest in nests:
        if launcher.limits.core_vectors:
            task_launch(launcher, prim, [nest], buffers)
        else:
            point_launch(launcher, simplify(nest), buffers)


def _scratch(launcher: Launcher, prim: PrimView, nests: list[Nest], buffers: dict[SSAValue, SSAValue]) -> None:
    """Memory for what one launch leaves to a later one."""
    used = {b for n in nests for b in (*(a.buffer for a in n.accesses()), *n.loaded())}
    for t in prim.temporaries:
        if t in used:
            ty = t.type
            assert isinstance(ty, MemRefType)
            buffers[t] = launcher.scratch(ty.element_type, element_count(shape_of(ty)))
