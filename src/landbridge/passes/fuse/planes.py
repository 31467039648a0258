"""Rewrites concatenations that interleave scalars, as of eight maps ``1x172x309x1`` along the innermost axis.

Each part has one element along that axis and would be written element by element, with a stride of the number of parts.
Here the parts become planes, which their producers write in place, followed by one transposition. The transposition is
fused into the reader if that is a kernel that only looks elements up.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from landbridge.analysis.free_rows import has_free_rows
from landbridge.ir.allocations import tensor_alloc
from landbridge.ir.copy_prims import CopyPrims
from landbridge.ir.graph_ops import CallOp, ConcatOp, ViewOp, graphs_in, viewed
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import node_name
from landbridge.ir.stages import view_prim
from landbridge.ir.traversal import operations
from landbridge.ir.types import dtype_of, element_count, shape_of, tensor_type, vdevice_of
from landbridge.passes.rewrites import rewrite
from landbridge.sizes.size import at_least
from landbridge.targets.grid import grid_limits

#: Parts with fewer elements gain less than another kernel costs.
_FEWEST = 256


@rewrite("fuse.interleaved_concat", "a concatenation of scalars becomes planes and a transpose")
def concatenate_planes(module: IRModule) -> None:
    """Concatenate interleaved parts as planes, and transpose them, where kernels run on a CPU's vectors."""
    functions, copies = module.prims(), CopyPrims(module)

    def gains(op: ConcatOp) -> bool:
        vectors = _has_lanes(module, op.result) and _is_of_values(op)
        return vectors and not any(_is_reduced(functions, part) for part in op.inputs)

    def rewrite_block(block: Block) -> None:
        for op in operations(block):
            for region in graphs_in(op):
                rewrite_block(region.block)
            if isinstance(op, ConcatOp) and gains(op):
                _replace(op, copies)

    rewrite_block(module.main.body.block)


def _is_of_values(op: ConcatOp) -> bool:
    """Returns whether parts of ``op`` are interleaved scalar by scalar."""
    axis, shape = op.axis.value.data, shape_of(op.result.type)
    if len(op.inputs) < 2 or any(shape_of(part.type)[axis] != 1 for part in op.inputs):
        return False
    return all(e == 1 for e in shape[axis + 1 :]) and at_least(element_count(shape[:axis]), _FEWEST) is True


def _has_lanes(module: IRModule, value: SSAValue) -> bool:
    vdevice = vdevice_of(value.type)
    target = module.target_of(vdevice.index.data)
    is_flat = not vdevice.axis_separators and not has_free_rows(module, vdevice)
    return grid_limits(target) is None and target.form != "loops" and is_flat


def _is_reduced(functions: dict[str, func.FuncOp], value: SSAValue) -> bool:
    """Returns whether a kernel with a reduction computes ``value``: it may get a layout of its own."""
    producer = viewed(value).owner
    return isinstance(producer, CallOp) and any(
        g.reduces for g in view_prim(functions[producer.callee_name]).generics()
    )


def _replace(op: ConcatOp, copies: CopyPrims) -> None:
    axis, shape = op.axis.value.data, shape_of(op.result.type)
    outer, dtype, vdevice = shape[:axis], dtype_of(op.result.type), vdevice_of(op.result.type)
    views = [ViewOp(part, tensor_type([1, *outer], dtype, vdevice)) for part in op.inputs]
    planes = ConcatOp([view.result for view in views], 0, tensor_type([len(views), *outer], dtype, vdevice))
    order = [*range(1, axis + 1), 0]
    alloc = tensor_alloc(tensor_type([*outer, len(views)], dtype, vdevice))
    name = copies.transpose([len(views), *outer], order, dtype, vdevice)
    call = CallOp(name, [planes.result], [alloc.tensor], [alloc.tensor.type], node_name(op))
    Rewriter.insert_op([*views, planes, alloc, call], InsertPoint.before(op))
    result = call.res[0]
    if result.type != op.result.type:
        view = ViewOp(result, op.result.type)
        Rewriter.insert_op(view, InsertPoint.before(op))
        result = view.result
    Rewriter.replace_op(op, [], [result])
