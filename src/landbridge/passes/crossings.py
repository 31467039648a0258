"""Decides which crossings are views, by the memory that the Targets declare.

A device and a CPU that share memory exchange tensors without a copy: a tensor that one writes and the other reads is
placed in host memory that both use. Inputs and outputs are placed there too if code of both uses them. If the device
cannot use host memory, but host code can use the device's, a crossing tensor is placed in device memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from landbridge.analysis.claims import produced
from landbridge.analysis.placements import decide_crossings
from landbridge.analysis.shared_memory import is_host, shares
from landbridge.ir.graph_ops import ToVDeviceOp, viewed
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import set_crossing_reason
from landbridge.ir.traversal import operations_of
from landbridge.ir.types import vdevice_of
from landbridge.passes.place.first_vdevice import swap_first
from landbridge.passes.registry import register_pass
from landbridge.passes.rewrites import rewrite


@register_pass("crossings")
def crossings(module: IRModule) -> None:
    """Make a crossing a view where both sides use the same memory, and put inputs and outputs there."""
    _drop_detours(module)
    host = _host_for_both(module)
    if host is not None:
        swap_first(module, host)
        _drop_detours(module)
    for op, crossing in decide_crossings(module, module.main.body.block).items():
        if crossing.is_view:
            _make_view(op)
        set_crossing_reason(op, crossing.why)


@rewrite("crossings.view", "a crossing between devices that share memory copies nothing")
def _make_view(op: ToVDeviceOp) -> None:
    op.attributes["view"] = UnitAttr()


@rewrite("crossings.host_memory", "inputs and outputs are in memory of the CPU that the first device shares")
def _host_for_both(module: IRModule) -> int | None:
    """Returns the CPU vdevice for inputs and outputs that code of the CPU and of the first vdevice both use; None if
    none."""
    block = module.main.body.block
    returned = block.last_op.operands if block.last_op is not None else ()
    producers = {found for value in returned if (found := produced(value)) is not None}
    for op in operations_of(module.main, ToVDeviceOp):
        ends = vdevice_of(op.source.type), vdevice_of(op.result.type)
        outside = viewed(op.source) in block.args or op.result in producers or produced(op.source) in producers
        for mine, other in (ends, ends[::-1]):
            if outside and mine.index.data == 0 and is_host(module, other) and shares(module, mine, other):
                return other.index.data
    return None


@rewrite("crossings.nowhere", "a crossing to where a tensor is already is removed")
def nowhere(op: ToVDeviceOp) -> SSAValue | None:
    """Returns the source of a crossing that does not change the placement."""
    return op.source if op.source.type == op.result.type else None


@rewrite("crossings.there_and_back", "a crossing back to where a tensor came from is removed")
def there_and_back(op: ToVDeviceOp) -> SSAValue | None:
    """Returns the original value of a crossing that undoes another one."""
    before = op.source.owner
    return before.source if isinstance(before, ToVDeviceOp) and before.source.type == op.result.type else None


def _drop_detours(module: IRModule) -> None:
    """Replace crossings by values that are already in place, and erase unused crossings."""
    found = operations_of(module.main, ToVDeviceOp)
    for op in found:
        known = nowhere(op) or there_and_back(op)
        if known is not None:
            op.result.replace_all_uses_with(known)
    _drop_unused(found)


@rewrite("crossings.unused", "a crossing that nothing reads is removed")
def _drop_unused(crossings: Sequence[ToVDeviceOp]) -> None:
    for op in reversed(crossings):
        if op.result.first_use is None:
            Rewriter.erase_op(op)
