"""Cost model: uncached access of host code to a device's memory in place, against a copy to the host's memory."""

from __future__ import annotations

from math import prod
from typing import cast

from xdsl.ir import SSAValue

from landbridge.analysis.accesses import reads_of
from landbridge.ir.graph_ops import CallOp, ToVDeviceOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import AnyTensor, item_bytes, nbytes_of
from landbridge.memory_kind import MemoryKind


def costs_less_in_place(module: IRModule, op: ToVDeviceOp, *, to_host: bool, kind: MemoryKind) -> bool:
    """Returns whether host kernels take no longer in memory of ``kind`` than with the copy that ``op`` would be.

    Decides by the bandwidths that the kind declares. Each read of uncached memory goes to memory. If a use reads an
    unknown number of bytes, the crossing is a copy. The accesses to the host's own memory after a copy are not counted.
    """
    rates = kind.host_read_bandwidth, kind.host_write_bandwidth, kind.copy_bandwidth
    value = op.result if to_host else op.source
    read, written = _bytes_read(module, value), 0
    if not to_host:
        if not isinstance(value.owner, CallOp):
            return False
        written = nbytes_of(value.type)
    if None in rates or read is None:
        return False
    reading, writing, copying = cast(tuple[int, int, int], rates)
    return read / reading + written / writing <= nbytes_of(value.type) / copying


def _bytes_read(module: IRModule, value: SSAValue) -> int | None:
    """Returns the bytes of ``value`` that kernels load; None if something else uses it, or a kernel in an unknown
    way."""
    total = 0
    for use in value.uses:
        call = use.operation
        if isinstance(call, ToVDeviceOp):
            continue
        if not isinstance(call, CallOp) or use.index >= len(call.inputs):
            return None
        prim = module.prims()[call.callee_name]
        reads = reads_of(prim.args[use.index]) if prim.body.blocks else None
        if not reads:
            return None
        total += sum(prod(read.stage.extents) for read in reads) * item_bytes(cast(AnyTensor, value.type))
    return total
