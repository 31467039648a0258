"""Gives PrimFuncs the memory spaces of the operands that they are called with."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.ir.graph_ops import CallOp
from landbridge.ir.module import IRModule
from landbridge.ir.prim_ops import ForallOp, StepsOp
from landbridge.ir.traversal import operations_of
from landbridge.ir.types import vdevice_of
from landbridge.passes.rewrites import rewrite

Spaces = tuple[Attribute, ...]


@rewrite("place.memory_space", "a PrimFunc takes its operands in the memory spaces that they are in")
def match_spaces(module: IRModule) -> None:
    """Make every PrimFunc take its operands in their spaces; one called with several is cloned."""
    prims = module.prims()
    served: dict[str, Spaces] = {}
    clones: dict[tuple[str, Spaces], str] = {}
    for op in operations_of(module.main, CallOp):
        callee = op.callee_name
        spaces = tuple(_space_of(v) for v in op.operands)
        if served.setdefault(callee, spaces) == spaces:
            _set_spaces(prims[callee], spaces)
            continue
        if (callee, spaces) not in clones:
            name = clones[callee, spaces] = f"{callee}_s{len(clones)}"
            _set_spaces(module.clone_prim(prims[callee], name), spaces)
        op.callee_name = clones[callee, spaces]


def _set_spaces(function: func.FuncOp, spaces: Sequence[Attribute]) -> None:
    arguments = function.body.block.args
    types = [_in_space(a.type, space) for a, space in zip(arguments, spaces, strict=True)]
    if types == [a.type for a in arguments]:
        return
    for argument, ty in zip(list(arguments), types, strict=True):
        if ty != argument.type:
            inside = [(u.operation, u.index) for u in argument.uses if isinstance(u.operation, StepsOp | ForallOp)]
            Rewriter.replace_value_with_new_type(argument, ty)
            for stage, number in inside:
                Rewriter.replace_value_with_new_type(stage.argument_for(number), ty)
    function.properties["function_type"] = FunctionType.from_lists(types, [])


def _in_space(ty: Attribute, space: Attribute) -> Attribute:
    if not isinstance(ty, MemRefType) or ty.memory_space == space:
        return ty
    return MemRefType(ty.element_type, ty.shape, ty.layout, space)


def _space_of(value: SSAValue) -> Attribute:
    return value.type.memory_space if isinstance(value.type, MemRefType) else vdevice_of(value.type).space
