"""Step 1: an elementwise call disappears into the one call that reads its result."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from landbridge.ir.graph_ops import CallOp
from landbridge.ir.types import vdevice_of
from landbridge.passes.fuse.accesses import Read, pointwise_stage, reads_of
from landbridge.passes.fuse.graph import Graph, source_of
from landbridge.passes.fuse.inline import can_inline
from landbridge.passes.fuse.merge import merge
from landbridge.passes.fuse.reshape import cross, crossing


def merge_operands(graph: Graph, block: Block) -> None:
    """Give every call each of its inputs once."""
    for call in graph.calls(block):
        if len(set(call.inputs)) < len(call.inputs):
            merge(graph, [call])


def fuse_pointwise(graph: Graph, block: Block, into_reductions: bool) -> None:
    """Inline elementwise producers, in program order; into plain reductions too when ``into_reductions``."""
    for call in graph.calls(block):
        current: CallOp | None = call
        while current is not None:
            current = _absorb(graph, block, current, into_reductions)


def only_consumer(graph: Graph, producer: CallOp, call: CallOp, value: SSAValue) -> bool:
    """Whether ``call``, through ``value`` alone and on the same placement, is all that reads ``producer``."""
    return graph.consumers(producer) == [(call, value)] and vdevice_of(producer.res[0].type) == vdevice_of(
        call.res[0].type
    )


def reads_by(graph: Graph, call: CallOp, value: SSAValue) -> list[Read] | None:
    """How the PrimFunc of ``call`` reads its input ``value``; None when not by generic stages alone."""
    return reads_of(graph.function(call).body.block.args[list(call.inputs).index(value)])


def _absorb(graph: Graph, block: Block, call: CallOp, into_reductions: bool) -> CallOp | None:
    """Merge one elementwise producer into ``call``; the merged call, or None when there is none to merge."""
    for value in call.inputs:
        producer = graph.producer(value, block)
        if producer is None or not only_consumer(graph, producer, call, value):
            continue
        stage = pointwise_stage(graph.function(producer))
        if stage is None:
            continue
        reads = reads_by(graph, call, value)
        if not reads or (reads[0].stage.reduces and not into_reductions) or not can_inline(stage, reads):
            continue
        if source_of(value) is not value and not crossing(graph, call, value):
            continue
        return merge(graph, [producer, cross(graph, call, value)])
    return None
