"""Separates updates of a tensor from the copy that they are made in: the copy becomes its own kernel, or is dropped.

A kernel that puts updates into a tensor (ScatterND, TensorScatter) copies all of it first, and then writes the updates.
If source and destination are the same memory, as the pass ``inplace`` or a caller's aliased binding makes them, only
the updates are written. Otherwise the copy runs on all threads or workgroups, and the ledger counts it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import FunctionType
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.analysis.lifetimes import beginning, root
from landbridge.analysis.overwriting import copied_first, copies_whole
from landbridge.ir.copy_prims import CopyPrims
from landbridge.ir.graph_ops import CallOp, ViewOp
from landbridge.ir.kernel_attributes import unmark_in_place
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import node_name, place_on, placed_on
from landbridge.ir.segments import OPERAND_SEGMENTS
from landbridge.ir.stages import view_prim
from landbridge.ir.traversal import operations_of
from landbridge.ir.types import AnyMemRef, VDeviceAttr, dtype_of, element_count, memref_type, nbytes_of, shape_of
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.passes.registry import register_pass
from landbridge.sizes.size import at_least
from landbridge.targets.grid import grid_limits

#: What one workgroup copies in the time of a launch: some 10 microseconds at 10 bytes a nanosecond.
_MANY_BYTES = 1 << 16


@register_pass("updates")
def updates(module: IRModule) -> None:
    """Separate updates of tensors from their copies, and drop copies of memory onto itself."""
    copies, prims = CopyPrims(module), module.prims()
    calls = operations_of(module.main, CallOp)
    for op in calls:
        prim = prims[op.callee_name]
        if copies_whole(prim) and is_same_memory(op.inputs[0], op.destinations[0]):
            Rewriter.erase_op(op)
            continue
        copied = copied_first(prim, len(op.destinations))
        if copied is None:
            continue
        source, target = op.inputs[copied[0]], op.destinations[copied[1]]
        if not is_same_memory(source, target):
            if not _is_separate(module, source, target, placed_on(op)):
                continue
            _copy(copies, op, source, target)
        _leave_out(module, op, copied[0])
    module.drop_unused()


def is_same_memory(left: SSAValue, right: SSAValue) -> bool:
    """Returns whether two values of one size begin at the same element of one buffer."""
    (one, first), (other, second) = beginning(left), beginning(right)
    return (
        one is other and first == second and element_count(shape_of(left.type)) == element_count(shape_of(right.type))
    )


def _is_separate(module: IRModule, source: SSAValue, target: SSAValue, vdevice: VDeviceAttr) -> bool:
    """Returns whether the copy of ``source`` to ``target`` becomes a kernel.

    On a grid of workgroups it does where one workgroup would copy for longer than a launch takes, and where an input
    may have the memory of an output, so that there may be nothing to copy.
    """
    if vdevice.scope.data != GLOBAL_SCOPE:
        return False
    is_small = at_least(_MANY_BYTES - 1, nbytes_of(target.type))
    if grid_limits(module.target_of(vdevice.index.data)) is None or not is_small:
        return True
    return all(isinstance(root(value), BlockArgument) for value in (source, target))


def _copy(copies: CopyPrims, op: CallOp, source: SSAValue, target: SSAValue) -> None:
    """Copy ``source`` to ``target`` before ``op``."""
    vdevice, dtype = placed_on(op), dtype_of(source.type)
    count = element_count(shape_of(source.type))
    line = memref_type([count], dtype, vdevice.space)
    views = [_view(op, value, line) for value in (source, target)]
    call = CallOp(copies.flat(count, dtype, vdevice), views[:1], views[1:], [], node_name(op))
    place_on(call, vdevice)
    _insert(op, call)


def _view(op: CallOp, value: SSAValue, line: AnyMemRef) -> SSAValue:
    root, first = beginning(value)
    view = ViewOp(root, line, first)
    _insert(op, view)
    return view.result


def _insert(before: CallOp, op: CallOp | ViewOp) -> None:
    block = before.parent
    assert block is not None
    block.insert_op_before(op, before)


def _leave_out(module: IRModule, op: CallOp, copied: int) -> None:
    """Let ``op`` call the part after the copy of its input number ``copied``, and drop that input."""
    name = f"{op.callee_name.removesuffix('_in_place')}_update"
    if name not in module.prims():
        rest = module.clone_prim(module.prims()[op.callee_name], name)
        unmark_in_place(rest)
        block = rest.body.block
        Rewriter.erase_op(view_prim(rest).stages[0])
        block.erase_arg(block.args[copied])
        rest.properties["function_type"] = FunctionType.from_lists([a.type for a in block.args], [])
    op.callee_name = name
    inputs = [value for number, value in enumerate(op.inputs) if number != copied]
    attributes = {key: value for key, value in op.attributes.items() if key != OPERAND_SEGMENTS}
    new_call = CallOp.build(operands=[inputs, list(op.destinations)], result_types=[[]], attributes=attributes)
    _insert(op, new_call)
    Rewriter.erase_op(op)
