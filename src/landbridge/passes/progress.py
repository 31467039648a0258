"""Progress of a module: the passes of a pipeline that it still needs."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType

from landbridge.errors import CompileError
from landbridge.ir.main_attributes import PLACE, open_requests
from landbridge.ir.memory_ops import AllocStorageOp
from landbridge.ir.module import IRModule
from landbridge.ir.traversal import all_operations


def passes_to_do(module: IRModule, pipeline: Sequence[str]) -> Sequence[str]:
    """Returns the passes of ``pipeline`` that ``module`` needs to become a plan, as its operations show.

    On tensors it needs all: each pass skips what it has done before. On buffers it needs those after "bufferize", with
    a plan none. Raises CompileError if placements were requested that are decided already.
    """
    values = [v for op in all_operations(module.main) for v in (*op.operands, *op.results)]
    if not values or any(isinstance(v.type, TensorType) for v in values):
        return pipeline
    planned = any(isinstance(op, AllocStorageOp) for op in module.main.body.block.ops)
    requested = open_requests(module.main)
    if PLACE in requested or (planned and requested):
        raise CompileError(
            "place= is for IR on tensors and spill= for IR without a plan; this IR is further, give an earlier dump"
        )
    return () if planned else pipeline[pipeline.index("bufferize") + 1 :]
