"""Rows: chooses which axes make the rows of tensors in scopes of several dimensions, where no request says which."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from landbridge.analysis.free_rows import choose_separators, values_with_free_rows
from landbridge.ir.graph_ops import ViewOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr, dtype_of, shape_of, vdevice_of
from landbridge.passes.place.images import check_images
from landbridge.passes.place.spaces import match_spaces
from landbridge.passes.place.usable import check_rows_usable
from landbridge.passes.registry import register_pass


@register_pass("rows")
def rows(module: IRModule) -> None:
    """Give tensors in scopes of several dimensions their axis separators, by their physical shapes."""
    found = values_with_free_rows(module)
    if not found:
        return
    for value in found:
        _choose(module, value)
    check_rows_usable(module)
    check_images(module)
    match_spaces(module)


def _choose(module: IRModule, value: SSAValue) -> None:
    ty, vdevice = value.type, vdevice_of(value.type)
    assert isinstance(ty, TensorType)
    if isinstance(value.owner, ViewOp) and shape_of(value.owner.source.type) == shape_of(ty):
        placed = vdevice_of(value.owner.source.type)  # the same bytes
    else:
        index, scope = vdevice.index.data, vdevice.scope.data
        target = module.target_of(index)
        separators = choose_separators(target, target.memory_kind(scope), shape_of(ty), dtype_of(ty))
        placed = VDeviceAttr.of(index, scope, separators)
    Rewriter.replace_value_with_new_type(value, TensorType(ty.element_type, ty.shape, placed))
