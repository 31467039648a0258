"""Step 3 of fusion: chains that work row by row, such as a decomposed LayerNorm, become one call.

The merged PrimFunc retains its stages over the full extents with full-size temporaries. Lowering runs all of them for
one row, then for the next, and shrinks the temporaries to a row; this step makes sure that rows exist and are small.
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
from landbridge.passes.rewrites import rewrite
from landbridge.records import record
from landbridge.sizes.size import at_least, expected_size

#: The most bytes of a row, as one stage accesses it: rows stay in L1 together with their neighbours.
MAX_ROW_BYTES = 16 * 1024

#: The most stages of a kernel: with more LLVM takes long, and memory traffic does not shrink.
MAX_STAGES = 48

#: The fewest elements of a row, unless rows are few: shorter ones cost more in loop control than they save in traffic.
MIN_ROW_ELEMENTS = 16
FEW_ROWS = 64


@record(frozen=True)
class Rows:
    """The row decomposition of a PrimFunc: the loops that all its stages share, and the data of a row.

    ``prefix``: extents of the leading parallel loops common to all stages, at whose indices every buffer that the
    PrimFunc writes is accessed. ``inputs``: for each input how many of its leading indices are those loops. ``loops``:
    the extents of each stage. ``width``: the widest element in bytes.
    """

    prefix: tuple[int, ...]
    inputs: tuple[int, ...]
    loops: tuple[tuple[int, ...], ...]
    width: int


def rows_of(function: func.FuncOp, inputs: int) -> Rows | None:
    """Returns the rows of a PrimFunc with ``inputs`` input arguments; None for contractions, windows and pads."""
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


@rewrite("fuse.row_chain", "calls that work on the same rows become one")
def fuse_rows(graph: Graph, block: Block) -> None:
    """Merge every call with producers on the same rows whose results only the merged calls read."""
    rows: dict[func.FuncOp, Rows | None] = {}
    for call in reversed(graph.calls(block)):
        if call in graph.order:
            group = _grow(graph, block, call, rows)
            if len(group) > 1:
                merge(graph, sorted(group, key=graph.order.__getitem__))


def _grow(graph: Graph, block: Block, sink: CallOp, rows: dict[func.FuncOp, Rows | None]) -> set[CallOp]:
    """Returns ``sink`` and the calls that can join it."""
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
                # Producers of a new member may have waited for it, as their other reader.
                pending = list(group)
                break
    return group


def _rows(graph: Graph, call: CallOp, rows: dict[func.FuncOp, Rows | None]) -> Rows | None:
    function = graph.function(call)
    if function not in rows:
        rows[function] = rows_of(function, len(inputs_of(call))) if len(call.res) == 1 else None
    return rows[function]


def _fits(graph: Graph, group: set[CallOp], rows: dict[func.FuncOp, Rows | None]) -> bool:
    """Returns whether the calls share rows of a size that makes merging useful."""
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
