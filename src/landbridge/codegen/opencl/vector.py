"""OpenCL C of the ``vector`` dialect but for its loads and stores."""

from __future__ import annotations

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation

from landbridge.codegen.c import vector as c_vector
from landbridge.codegen.c.emitter import Emitter, Printer
from landbridge.errors import CodegenError


def _broadcast(e: Emitter, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    if isinstance(source.type, VectorType):
        if source.type != result.type:
            raise CodegenError(f"vector.broadcast of {source.type} to {result.type}; legal: a scalar, or the same type")
        e.names[result] = e.names[source]
        return
    e.set(result, f"({e.kind(result).text})({e.names[source]})")


PRINTERS: dict[type[Operation], Printer] = {
    vector.BroadcastOp: _broadcast,
    vector.ReductionOp: c_vector.PRINTERS[vector.ReductionOp],
    vector.ExtractOp: c_vector.PRINTERS[vector.ExtractOp],
    vector.InsertOp: c_vector.PRINTERS[vector.InsertOp],
}
