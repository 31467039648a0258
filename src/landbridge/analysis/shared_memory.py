"""Finds memory that a device and a CPU both use in place, the host's or the device's, by their Targets."""

from __future__ import annotations

from landbridge.analysis.access_cost import costs_less_in_place
from landbridge.ir.graph_ops import ToVDeviceOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr, vdevice_of
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.targets import Target


def host_of(module: IRModule, op: ToVDeviceOp) -> VDeviceAttr | None:
    """Returns the placement in host memory where both sides of a crossing can use a tensor; None if there is none."""
    ends = vdevice_of(op.source.type), vdevice_of(op.result.type)
    for host, device in (ends, ends[::-1]):
        if is_host(module, host) and shares(module, device, host):
            return host
    return None


def lender_of(module: IRModule, op: ToVDeviceOp) -> VDeviceAttr | None:
    """Returns the placement in device memory where both sides of the crossing ``op`` can use a tensor; None if there is
    none.

    One side is the host's CPU. If the memory is not coherent, barriers around the CPU's kernels make writes visible.
    """
    ends = vdevice_of(op.source.type), vdevice_of(op.result.type)
    for host, device in (ends, ends[::-1]):
        if is_host(module, host) and device.scope.data == GLOBAL_SCOPE and lends(module.target_of(device.index.data)):
            return device
    return None


def is_slow_in_place(module: IRModule, op: ToVDeviceOp, lender: VDeviceAttr) -> bool:
    """Returns whether the host's kernels take longer with the tensor of the crossing ``op`` in memory of ``lender``
    than with a copy.

    That may be so only for memory that the host's caches do not hold.
    """
    kind = module.target_of(lender.index.data).memory_kind(GLOBAL_SCOPE)
    to_host = vdevice_of(op.source.type) == lender
    return not kind.cached and not costs_less_in_place(module, op, to_host=to_host, kind=kind)


def lends(target: Target) -> bool:
    """Returns whether host code uses the global memory of ``target``'s device in place, for some tensors at least."""
    return not why_not_borrowed(target)


def why_not_borrowed(target: Target) -> str:
    """Returns what keeps host code from using the global memory of ``target``'s device; empty if nothing does.

    Uncached memory is read so slowly that a copy costs less, unless bandwidths are declared: then they decide each
    crossing. A barrier for memory that is not pinned may itself be a copy between the pieces of memory of a driver.
    """
    kind = next((kind for kind in target.memory if kind.scope == GLOBAL_SCOPE), None)
    if kind is None:
        return "its target states no global memory"
    if target.on_host:
        return "its memory is that of another CPU"
    if kind.host_access != "read_write":
        return f"the host cannot use it in place: host_access is {kind.host_access}"
    if kind.ndim != 1:
        return "it is made of rows"
    if not kind.cached and None in (kind.host_read_bandwidth, kind.host_write_bandwidth, kind.copy_bandwidth):
        return "it is past the host's caches: a copy costs less"
    if not kind.coherent and not kind.pinned:
        return "it is neither coherent nor pinned: a barrier may be a copy"
    return ""


def why_copied(module: IRModule, op: ToVDeviceOp) -> str:
    """Returns what keeps a crossing from being a view, by all that Targets declare; empty if nothing does."""
    ends = vdevice_of(op.source.type), vdevice_of(op.result.type)
    if ends[0].index == ends[1].index:
        return "another scope of the same device"
    for host, device in (ends, ends[::-1]):
        if is_host(module, host):
            name = module.vdevices[device.index.data].name
            if device.scope.data != GLOBAL_SCOPE:
                return f"{device.scope.data} of {name} is reached by copies alone"
            why = why_not_borrowed(module.target_of(device.index.data))
            return why and f"{name} has memory of its own, and {why}"
    return "neither side is a CPU that works in the other's memory"


def is_host(module: IRModule, vdevice: VDeviceAttr) -> bool:
    """Returns whether ``vdevice`` is ordinary memory of the host, which CPU kernels use in place.

    That is the global scope of a target on the host, if it is coherent and the host may read and write it.
    """
    target = module.target_of(vdevice.index.data)
    if not target.on_host or vdevice.scope.data != GLOBAL_SCOPE:
        return False
    kinds = [kind for kind in target.memory if kind.scope == GLOBAL_SCOPE]
    return all(kind.coherent and kind.host_readable and kind.host_writable for kind in kinds)


def shares(module: IRModule, device: VDeviceAttr, host: VDeviceAttr) -> bool:
    """Returns whether kernels for ``device``, in its global scope, may use memory placed on ``host`` without a copy."""
    names = module.target_of(host.index.data).device_types
    shared = module.target_of(device.index.data).shares
    return device.scope.data == GLOBAL_SCOPE and any((name, host.scope.data) in shared for name in names)
