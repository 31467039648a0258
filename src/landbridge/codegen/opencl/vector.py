"""OpenCL C of the ``vector`` dialect but for its loads and stores."""

from __future__ import annotations

from xdsl.dialects import vector
from xdsl.ir import Operation

from landbridge.codegen.c import vector as c_vector
from landbridge.codegen.c.emitter import Emitter, Printer
from landbridge.codegen.printing import broadcast_vector


def _broadcast(e: Emitter, op: Operation) -> None:
    result, name = op.results[0], e.names[op.operands[0]]
    if broadcast_vector(op) is not None:
        e.names[result] = name
    else:
        e.set(result, f"({e.kind(result).text})({name})")


PRINTERS: dict[type[Operation], Printer] = {
    vector.BroadcastOp: _broadcast,
    vector.ReductionOp: c_vector.PRINTERS[vector.ReductionOp],
    vector.ExtractOp: c_vector.PRINTERS[vector.ExtractOp],
    vector.InsertOp: c_vector.PRINTERS[vector.InsertOp],
}
