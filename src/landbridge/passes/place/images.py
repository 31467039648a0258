"""Checks tensors that were placed in images against the limits of images."""

from __future__ import annotations

from xdsl.ir import BlockArgument, Operation, SSAValue

from landbridge.errors import PlacementError
from landbridge.ir.graph_ops import CallOp, ConstantOp, ToVDeviceOp, viewed
from landbridge.ir.main_attributes import io_names
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import node_name
from landbridge.ir.types import dtype_of, shape_of, vdevice_of
from landbridge.shapes.physical import physical_shape
from landbridge.targets.images import image_limits

_IMAGE_NDIM = 3


def check_images(module: IRModule) -> None:
    """Raises PlacementError for a tensor that was placed in an image and cannot be one, or has kernels that cannot use
    it.

    The error names node, tensor, request and the legal values.
    """
    for op in module.main.walk():
        if isinstance(op, CallOp | ConstantOp | ToVDeviceOp):
            for value in op.results:
                _check(module, op, value)


def _check(module: IRModule, op: Operation, value: SSAValue) -> None:
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
            f"{_created_by(module, op)}: a tensor of {dtype}{list(shape)} was asked for in scope {scope!r} with axis "
            f"separators {list(vdevice.axis_separators)}, as an image of {extents[0]} rows of {extents[1]} pixels of "
            f"{extents[2]}: {reason}"
        )


def _created_by(module: IRModule, op: Operation) -> str:
    if isinstance(op, ToVDeviceOp):
        source = viewed(op.source)
        if isinstance(source, BlockArgument):
            return f"input {io_names(module.main)[0][source.index]!r}"
    return f"weight {op.symbol_name!r}" if isinstance(op, ConstantOp) else f"node {node_name(op)!r}"
