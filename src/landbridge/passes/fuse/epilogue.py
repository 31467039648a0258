"""Step 2 of fusion: an elementwise call joins the call whose result it reads element by element.

Some join before step 1, because their readers will join another call: in a sum of two convolutions with a bias and a
scale each, the earlier convolution gets its own bias and scale, which ``fold_scale`` then folds into its weights.
"""

from __future__ import annotations

from xdsl.dialects import func, linalg
from xdsl.ir import Block, SSAValue

from landbridge.analysis.accesses import follows, pointwise_stage, reads_of, writers_of
from landbridge.ir.graph_ops import CallOp, ConstantOp
from landbridge.ir.prim_ops import PadOp
from landbridge.ir.stages import Generic, is_identity, view_generic
from landbridge.ir.types import shape_of
from landbridge.passes.fuse.graph import Graph, inputs_of
from landbridge.passes.fuse.limits import MAX_OPERANDS
from landbridge.passes.fuse.merge import merge
from landbridge.passes.fuse.pointwise import only_consumer, reads_by
from landbridge.passes.fuse.reshape import cross, crossing_pointwise
from landbridge.passes.fuse.vectors import computes_addresses, is_light, runs_on_vectors
from landbridge.passes.rewrites import rewrite


@rewrite("fuse.epilogue", "an elementwise call joins the call that computes its operand")
def fuse_epilogues(graph: Graph, block: Block) -> None:
    """Merge every elementwise call into the last producer that it can follow element by element."""
    for call in graph.calls(block):
        stage = graph.pointwise(call)
        if stage is None or len(stage.ins) > MAX_OPERANDS:
            continue
        found = []
        for value in inputs_of(call):
            producer = graph.producer(value, block)
            if producer is not None and _can_follow(graph, producer, call, value):
                found.append((graph.order[producer], producer, value))
        if found:
            _, producer, value = max(found, key=lambda f: f[0])
            merge(graph, [producer, cross(graph, call, value)])


@rewrite("fuse.branch_epilogue", "an operand of a later epilogue gets its elementwise operations where it is computed")
def fuse_branch_epilogues(graph: Graph, block: Block) -> None:
    """Merge operations on one result into its producer, if their reader will become the epilogue of another producer.

    The reader is an elementwise call with another input, of a later producer.
    """
    for call in graph.calls(block):
        computed = _computed(call)
        if len(computed) < 2 or graph.pointwise(call) is None:
            continue  # so that each call is on at most one path
        fusions = [way for value in computed if (way := _way_from_producer(graph, block, call, value))]
        for producer, *steps in sorted(fusions, key=lambda way: graph.order[way[0]])[:-1]:
            for step in steps:
                if not _can_follow(graph, producer, step, producer.res[0]):
                    break
                producer = merge(graph, [producer, step])


def _way_from_producer(graph: Graph, block: Block, call: CallOp, value: SSAValue) -> list[CallOp]:
    """Returns the path from a call that is not elementwise through elementwise calls of its result alone to ``value``.

    Each call of the path is read only by the next, and the last only by ``call``. Returns none if there is no such
    path.
    """
    path: list[CallOp] = []
    while True:
        producer = graph.producer(value, block)
        if producer is None or producer.res[0] is not value or not only_consumer(graph, producer, call, value):
            return []
        path.insert(0, producer)
        if graph.pointwise(producer) is None:
            return path
        computed = _computed(producer)
        if len(computed) != 1:
            return []
        call, value = producer, computed[0]


def _computed(call: CallOp) -> list[SSAValue]:
    return [value for value in inputs_of(call) if not isinstance(value.owner, ConstantOp)]


def _can_follow(graph: Graph, producer: CallOp, call: CallOp, value: SSAValue) -> bool:
    """Returns whether ``call``, inside the last loops of ``producer``, reads its result from registers, and on
    vectors."""
    if not only_consumer(graph, producer, call, value):
        return False
    reads = reads_by(graph, call, value)
    if not reads or not crossing_pointwise(graph, call, value):
        return False
    stage = reads[0].stage
    if shape_of(value.type) != stage.extents or not all(is_identity(r.operand.map, stage.extents) for r in reads):
        return False
    if computes_addresses(stage) or not all(follows(o.map) for o in stage.ins):
        return False
    function = graph.function(producer)
    last = _last_writer(function)
    if last is None or last.reduces:
        return last is not None
    padded = any(isinstance(op, PadOp) for op in function.body.block.ops)
    return pointwise_stage(function) is None and (is_light(stage) or (runs_on_vectors(last) and not padded))


def _last_writer(function: func.FuncOp) -> Generic | None:
    """Returns the last stage of a PrimFunc if it alone writes the result and no stage reads that again, else None."""
    block = function.body.block
    result = block.args[-1]
    writers = [w for w in writers_of(result) if not isinstance(w, linalg.ops.FillOp)]
    if len(writers) != 1 or reads_of(result) != []:
        return None
    last = writers[0]
    if not isinstance(last, linalg.ops.GenericOp) or not isinstance(last.next_op, func.ReturnOp):
        return None
    return view_generic(last)
