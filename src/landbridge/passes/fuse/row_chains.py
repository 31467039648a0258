"""Step 3: chains that work row by row, such as a decomposed LayerNorm, become one call.

The merged PrimFunc keeps its stages over the full extents with full-size temporaries. Lowering runs all of them for
one row, then for the next, and shrinks the temporaries to a row; here we see to it that rows exist and are small.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import func
from xdsl.ir import Block, SSAValue

from landbridge.analysis.accesses import buffers_read, identity_prefix, plain_reduction
from landbridge.ir.graph_ops import CallOp
from landbridge.ir.prim_ops import PadOp
from landbridge.ir.stages import view_prim
from landbridge.ir.types import item_bytes, shape_of
from landbridge.passes.fuse.graph import Graph, inputs_of, may_vanish
from landbridge.passes.fuse.limits import MAX_OPERANDS
from landbridge.passes.fuse.merge import merge
from landbridge.records import record
from landbridge.sizes.size import at_least, expected_size

#: A row, as one stage walks it, stays in the first-level cache with room for its neighbours.
MAX_ROW_BYTES = 16 * 1024

#: More stages make kernels that LLVM takes long over, and save no more memory traffic.
MAX_STAGES = 48

#: Shorter rows cost more in loop control than they save in memory traffic, unless there are few of them.
MIN_ROW_ELEMENTS = 16
FEW_ROWS = 64


@record(frozen=True)
class Rows:
    """How a PrimFunc divides into rows: the loops that all its stages share, and what a row needs.

    ``prefix``: extents of the leading parallel loops common to all stages, at whose indices every buffer that the
    PrimFunc writes is accessed. ``inputs``: for each input how many of its leading indices are those loops.
    ``loops``: the extents of each stage. ``width``: the widest element in bytes.
    """

    prefix: tuple[int, ...]
    inputs: tuple[int, ...]
    loops: tuple[tuple[int, ...], ...]
    width: int


def rows_of(function: func.FuncOp, inputs: int) -> Rows | None:
    """The rows of a PrimFunc with ``inputs`` input arguments; None for contractions, windows and pads."""
    view = view_prim(function)
    if view.has_own_order or any(isinstance(op, PadOp) for op in view.stages):
        return None
    arguments = function.body.block.args
    stages = list(view.generics())
    written = {*view.temporaries, *arguments[inputs:]}
    limits = dict.fromkeys((*written, *arguments), 1 << 30)
    prefix: tuple[int, ...] | None = None
    for stage in stages:
        if stage.reduces and not plain_reduction(stage):
            return None
        loaded = set(buffers_read(stage)) - {o.buffer for o in stage.ins}
        if loaded & written:
            return None
        limits.update(dict.fromkeys(loaded, 0))
        parallel = stage.extents[: len(stage.iterators) - len(stage.iterators.lstrip("p"))]
        prefix = parallel if prefix is None else _common(prefix, parallel)
        for o in (*stage.ins, *stage.outs):
            limits[o.buffer] = min(limits[o.buffer], identity_prefix(o.map, stage.extents, shape_of(o.buffer.type)))
    if prefix is None:
        return None
    depth = min((len(prefix), *(limits[b] for b in written)))
    return Rows(
        prefix[:depth],
        tuple(limits[a] for a in arguments[:inputs]),
        tuple(s.extents for s in stages),
        max(item_bytes(b.type) for b in limits),
    )


def fuse_rows(graph: Graph, block: Block) -> None:
    """Merge every call with the producers that work on the same rows and that it alone, or with them, reads."""
    rows: dict[CallOp, Rows | None] = {}
    for call in reversed(graph.calls(block)):
        if call in graph.order:
            group = _grow(graph, block, call, rows)
            if len(group) > 1:
                merge(graph, sorted(group, key=graph.order.__getitem__))


def _grow(graph: Graph, block: Block, sink: CallOp, rows: dict[CallOp, Rows | None]) -> set[CallOp]:
    """``sink`` and the calls that can join it."""
    if len(inputs_of(sink)) > MAX_OPERANDS or _rows(graph, sink, rows) is None:
        return {sink}
    group = {sink}
    pending = [sink]
    while pending:
        for value in inputs_of(pending.pop()):
            producer = graph.producer(value, block)
            if producer is None or producer in group or not may_vanish(producer, sink):
                continue
            consumers = graph.consumers(producer, group)
            if consumers is None or any(v is not producer.res[0] for _, v in consumers):
                continue
            if _fits(graph, {*group, producer}, rows):
                group.add(producer)
                # What a member reads may have waited for this one, its other reader.
                pending = list(group)
                break
    return group


def _rows(graph: Graph, call: CallOp, rows: dict[CallOp, Rows | None]) -> Rows | None:
    if call not in rows:
        rows[call] = rows_of(graph.function(call), len(inputs_of(call))) if len(call.res) == 1 else None
    return rows[call]


def _fits(graph: Graph, group: set[CallOp], rows: dict[CallOp, Rows | None]) -> bool:
    """Whether the calls share rows of a size that is worth keeping together."""
    facts: dict[CallOp, Rows] = {}
    for call in group:
        r = _rows(graph, call, rows)
        if r is None:
            return False
        facts[call] = r
    internal: set[SSAValue] = {r for c in group for r in c.res}
    if len({v for c in group for v in inputs_of(c)} - internal) > MAX_OPERANDS:
        return False
    members = list(facts.values())
    if sum(len(r.loops) for r in members) > MAX_STAGES:
        return False
    prefix = members[0].prefix
    for r in members[1:]:
        prefix = _common(prefix, r.prefix)
    depth = len(prefix)
    for call, r in facts.items():
        for value, limit in zip(inputs_of(call), r.inputs, strict=True):
            if value in internal:
                depth = min(depth, limit)
    walked = [(prod(loops[depth:]), r.width) for r in members for loops in r.loops]
    if max(expected_size(n) for n, _ in walked) < MIN_ROW_ELEMENTS and expected_size(prod(prefix[:depth])) > FEW_ROWS:
        return False
    return all(at_least(MAX_ROW_BYTES, elements * width) for elements, width in walked)


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return a[:n]
