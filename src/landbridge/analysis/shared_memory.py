"""Which memory of the host a device and a CPU both use in place, as their Targets say."""

from __future__ import annotations

from landbridge.ir.graph_ops import ToVDeviceOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr, vdevice_of
from landbridge.memory_kind import GLOBAL_SCOPE


def host_of(module: IRModule, op: ToVDeviceOp) -> VDeviceAttr | None:
    """The place in memory of the host where both sides of a crossing can use a tensor; None where there is none."""
    ends = vdevice_of(op.source.type), vdevice_of(op.result.type)
    for host, device in (ends, ends[::-1]):
        if is_host(module, host) and shares(module, device, host):
            return host
    return None


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
