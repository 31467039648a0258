"""Checks tensors that were placed in images against the limits of images."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue

from landbridge.errors import PlacementError
from landbridge.ir.graph_ops import CallOp, ConstantOp, ToVDeviceOp, viewed
from landbridge.ir.main_attributes import io_names
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import node_name
from landbridge.ir.traversal import all_operations
from landbridge.ir.types import dtype_of, shape_of, vdevice_of
from landbridge.shapes.physical import physical_shape
from landbridge.targets.images import image_limits

_IMAGE_NDIM = 3


def check_images(module: IRModule) -> None:
    """Raises PlacementError for a tensor that was placed in an image and cannot be one, or has kernels that cannot use
    it.

    The error names node, tensor, request and the legal values. A tensor of an open program may be too large for some
    sizes only, which is an error when such a size is bound.
    """
    for argument, name in zip(module.main.body.block.args, io_names(module.main)[0], strict=False):
        _check(module, f"input {name!r}", argument)
    for op in all_operations(module.main):
        if isinstance(op, CallOp | ConstantOp | ToVDeviceOp):
            for value in op.results:
                _check(module, _created_by(module, op), value)


def _check(module: IRModule, created_by: str, value: SSAValue) -> None:
    if not isinstance(value.type, TensorType):
        return
    vdevice = vdevice_of(value.type)
    target, scope = module.target_of(vdevice.index.data), vdevice.scope.data
    if target.form != "grid" or len(vdevice.axis_separators) != _IMAGE_NDIM - 1:
        return
    limits, shape, dtype = image_limits(target, scope), shape_of(value.type), dtype_of(value.type)
    extents = physical_shape(shape, vdevice.axis_separators)
    if limits is None:
        reason: str | None = f"kernels of target {target.kind!r} use no images; legal: a flat scope"
    else:
        reason = limits.refusal(extents, dtype)
    if reason is not None:
        raise PlacementError(
            f"{created_by}: {_request(value)}, as an image of {extents[0]} rows of {extents[1]} pixels of "
            f"{extents[2]}: {reason}"
        )


def _request(value: SSAValue) -> str:
    """Returns a text of the tensor, and of where it was placed."""
    vdevice, shape = vdevice_of(value.type), shape_of(value.type)
    return (
        f"a tensor of {dtype_of(value.type)}{list(shape)} was asked for in scope {vdevice.scope.data!r} with axis "
        f"separators {list(vdevice.axis_separators)}"
    )


def _created_by(module: IRModule, op: Operation) -> str:
    if isinstance(op, ToVDeviceOp):
        source = viewed(op.source)
        if isinstance(source, BlockArgument):
            return f"input {io_names(module.main)[0][source.index]!r}"
    return f"weight {op.symbol_name!r}" if isinstance(op, ConstantOp) else f"node {node_name(op)!r}"
