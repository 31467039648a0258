"""Which memory a device and a CPU both use in place, as their Targets say: the host's, or the device's."""

from __future__ import annotations

from landbridge.ir.graph_ops import ToVDeviceOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr, vdevice_of
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.targets import Target


def host_of(module: IRModule, op: ToVDeviceOp) -> VDeviceAttr | None:
    """The place in memory of the host where both sides of a crossing can use a tensor; None where there is none."""
    ends = vdevice_of(op.source.type), vdevice_of(op.result.type)
    for host, device in (ends, ends[::-1]):
        if is_host(module, host) and shares(module, device, host):
            return host
    return None


def lender_of(module: IRModule, op: ToVDeviceOp) -> VDeviceAttr | None:
    """The place in memory of a device where the CPU at the other end of a crossing uses a tensor; None where it cannot.

    Barriers around the CPU's kernels make writes visible where the memory is not coherent.
    """
    ends = vdevice_of(op.source.type), vdevice_of(op.result.type)
    for host, device in (ends, ends[::-1]):
        if is_host(module, host) and device.scope.data == GLOBAL_SCOPE and lends(module.target_of(device.index.data)):
            return device
    return None


def lends(target: Target) -> bool:
    """Whether code of the host works in the global memory of ``target``'s device at the speed of its own.

    Memory past its caches is read so slowly that a copy costs less. A barrier for memory that is not pinned may be a
    copy itself, as it moves between a driver's pieces of memory.
    """
    kinds = [kind for kind in target.memory if kind.scope == GLOBAL_SCOPE]
    return not target.on_host and any(
        kind.host_access == "read_write" and kind.cached and kind.ndim == 1 and (kind.coherent or kind.pinned)
        for kind in kinds
    )


def is_host(module: IRModule, place: VDeviceAttr) -> bool:
    """Whether kernels of a CPU work in ``place``, which is ordinary memory to them."""
    target = module.target_of(place.index.data)
    if not target.on_host or place.scope.data != GLOBAL_SCOPE:
        return False
    kinds = [kind for kind in target.memory if kind.scope == GLOBAL_SCOPE]
    return all(kind.coherent and kind.host_readable and kind.host_writable for kind in kinds)


def shares(module: IRModule, device: VDeviceAttr, host: VDeviceAttr) -> bool:
    """Whether kernels for ``device`` use memory in ``host`` in place."""
    names = module.target_of(host.index.data).device_types
    shared = module.target_of(device.index.data).shares
    return device.scope.data == GLOBAL_SCOPE and any((name, host.scope.data) in shared for name in names)
