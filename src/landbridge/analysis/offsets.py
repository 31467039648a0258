"""Legal offsets of a tensor within another one's memory, as the kernels of each device require."""

from __future__ import annotations

from xdsl.ir import SSAValue

from landbridge.analysis.shared_memory import lends
from landbridge.ir.graph_ops import ToVDeviceOp, ViewOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr, item_bytes, vdevice_of
from landbridge.memory_kind import GLOBAL_SCOPE


def may_begin(module: IRModule, value: SSAValue, first: int) -> bool:
    """Returns whether a tensor may begin at element ``first`` of memory like that of ``value``, where it is used."""
    vdevice = vdevice_of(value.type)
    if first != 0 and has_one_tensor_per_space(module, vdevice):
        return False
    shared = any(target.shares or lends(target) for target in module.targets) and _crosses(value)
    alignment = offset_alignment(module, vdevice.index.data, vdevice.scope.data, shared=shared)
    return first * item_bytes(value.type) % alignment == 0


def has_one_tensor_per_space(module: IRModule, vdevice: VDeviceAttr) -> bool:
    """Returns whether no launch there may take two arguments of one space of which it writes one."""
    return any(
        kind.scope == vdevice.scope.data and kind.one_tensor_per_space
        for kind in module.target_of(vdevice.index.data).memory
    )


def offset_alignment(module: IRModule, vdevice: int, scope: str, *, shared: bool) -> int:
    """Returns the alignment of byte offsets in ``scope`` of ``vdevice``; with ``shared`` also for targets that share
    the memory."""
    target = module.target_of(vdevice)
    found = [kind.offset_alignment for kind in target.memory if kind.scope == scope and kind.ndim == 1]
    if shared:
        lenders = [t for t in module.targets if lends(t)] if target.on_host and scope == GLOBAL_SCOPE else []
        guests = [t for t in module.targets if any((name, scope) in t.shares for name in target.device_types)] + lenders
        kinds = [kind for guest in guests for kind in guest.memory if kind.scope == GLOBAL_SCOPE]
        # A barrier for one tensor must not affect another: they do not share a granule either.
        found += [max(kind.offset_alignment, kind.coherence_granule) for kind in kinds]
    return max(found, default=1)


def _crosses(value: SSAValue) -> bool:
    """Returns whether another vdevice uses the bytes of ``value`` in place."""
    if isinstance(value.owner, ToVDeviceOp) and value.owner.view is not None:
        return True
    pending = [value]
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            if isinstance(op, ToVDeviceOp) and op.view is not None:
                return True
            if isinstance(op, ViewOp):
                pending.append(op.result)
    return False
