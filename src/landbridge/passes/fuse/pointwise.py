"""Step 1 of fusion: an elementwise call is inlined into the only call that reads its result."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from landbridge.analysis.accesses import Read, reads_of
from landbridge.ir.graph_ops import CallOp
from landbridge.passes.fuse.graph import Graph, inputs_of, may_vanish, source_of
from landbridge.passes.fuse.inline import can_inline
from landbridge.passes.fuse.limits import MAX_OPERANDS
from landbridge.passes.fuse.merge import merge
from landbridge.passes.fuse.reshape import cross, crossing
from landbridge.passes.fuse.vectors import LIGHT
from landbridge.passes.rewrites import rewrite


@rewrite("fuse.repeated_operand", "operands of a call that are one value become one argument")
def merge_operands(graph: Graph, block: Block) -> None:
    """Merge operands of every call that are the same input."""
    for call in graph.calls(block):
        if len(set(inputs_of(call))) < len(inputs_of(call)):
            merge(graph, [call])


@rewrite("fuse.producer", "an elementwise call is inlined into its only reader")
def fuse_producers(graph: Graph, block: Block) -> None:
    """Inline every elementwise call into its only reader, in program order, where nothing is lost by that."""
    _fuse_pointwise(graph, block, last=False)


@rewrite("fuse.prologue", "an elementwise call is inlined into a plain reduction")
def fuse_prologues(graph: Graph, block: Block) -> None:
    """Inline elementwise calls also into plain reductions, and where light work loses its vectors.

    This comes last, when what is left gains nothing from any other rule.
    """
    _fuse_pointwise(graph, block, last=True)


def _fuse_pointwise(graph: Graph, block: Block, last: bool) -> None:
    for call in graph.calls(block):
        current: CallOp | None = call
        while current is not None:
            current = _absorb(graph, block, current, last)


def only_consumer(graph: Graph, producer: CallOp, call: CallOp, value: SSAValue) -> bool:
    """Returns whether ``call``, through ``value`` alone, is the only reader of ``producer``, and no placement forbids
    fusion."""
    return graph.consumers(producer, (call,)) == [(call, value)] and may_vanish(producer, call)


def reads_by(graph: Graph, call: CallOp, value: SSAValue) -> list[Read] | None:
    """Returns how the PrimFunc of ``call`` reads its input ``value``; None if other than generic stages read it."""
    return reads_of(graph.function(call).body.block.args[list(inputs_of(call)).index(value)])


def _absorb(graph: Graph, block: Block, call: CallOp, last: bool) -> CallOp | None:
    """Merge one elementwise producer into ``call``; returns the merged call, or None if there is no such producer."""
    own_stage = graph.pointwise(call)
    if own_stage is not None and len(own_stage.ins) > MAX_OPERANDS:
        return None  # a full call takes no more, and may have thousands of producers, each of which would be tested
    budget = LIGHT if last else 0
    for value in dict.fromkeys(inputs_of(call)):
        producer = graph.producer(value, block)
        if producer is None or not only_consumer(graph, producer, call, value):
            continue
        stage = graph.pointwise(producer)
        if stage is None or (source_of(value) is not value and not crossing(graph, call, value)):
            continue
        # Whether to inline is decided without the reshapes between the two; removing them loses nothing.
        call, result = cross(graph, call, value), producer.res[0]
        reads = reads_by(graph, call, result)
        if not last and reads and len(reads) > 1 and _continues(graph, producer, block):
            continue
        if reads and (last or not reads[0].stage.reduces) and can_inline(stage, reads, budget):
            return merge(graph, [producer, call], budget)
    return None


def _continues(graph: Graph, producer: CallOp, block: Block) -> bool:
    """Returns whether ``producer`` may become an epilogue of the call that computes its input.

    A reader that uses several of its elements would prevent that, and the call would write an unfinished result.
    """
    producers = (graph.producer(value, block) for value in inputs_of(producer))
    return any(call is not None and graph.pointwise(call) is None for call in producers)
