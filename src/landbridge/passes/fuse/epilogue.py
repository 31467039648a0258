"""Step 2: an elementwise call joins the call whose result it reads element by element."""

from __future__ import annotations

from xdsl.dialects import linalg
from xdsl.ir import Block, SSAValue

from landbridge.ir.graph_ops import CallOp
from landbridge.ir.prim_ops import PadOp
from landbridge.ir.stages import is_identity, view_generic
from landbridge.ir.types import shape_of
from landbridge.passes.fuse.accesses import identity_prefix, pointwise_stage, writers_of
from landbridge.passes.fuse.graph import Graph
from landbridge.passes.fuse.merge import merge
from landbridge.passes.fuse.pointwise import only_consumer, reads_by
from landbridge.passes.fuse.reshape import cross, crossing_pointwise


def fuse_epilogues(graph: Graph, block: Block) -> None:
    """Merge every elementwise call into the last of the producers it can follow element by element."""
    for call in graph.calls(block):
        if pointwise_stage(graph.function(call)) is None:
            continue
        found = []
        for value in call.inputs:
            producer = graph.producer(value, block)
            if producer is not None and _can_follow(graph, producer, call, value):
                found.append((graph.order[producer], producer, value))
        if found:
            _, producer, value = max(found, key=lambda f: f[0])
            merge(graph, [producer, cross(graph, call, value)])


def _can_follow(graph: Graph, producer: CallOp, call: CallOp, value: SSAValue) -> bool:
    if not only_consumer(graph, producer, call, value) or not _written_in_order(graph, producer):
        return False
    for read in reads_by(graph, call, value) or []:
        extents = read.stage.extents
        if shape_of(value.type) != extents or not is_identity(read.operand.map, extents):
            return False
    return reads_by(graph, call, value) is not None and crossing_pointwise(graph, call, value)


def _written_in_order(graph: Graph, producer: CallOp) -> bool:
    """Whether the leading loops of every stage that writes the result are its dimensions."""
    result = graph.function(producer).body.block.args[-1]
    for writer in writers_of(result):
        if isinstance(writer, linalg.ops.GenericOp):
            stage = view_generic(writer)
            for operand in stage.outs:
                if operand.buffer is result and identity_prefix(operand.map, stage.extents) < len(operand.map.results):
                    return False
        elif not isinstance(writer, linalg.ops.FillOp | PadOp):
            return False
    return True
