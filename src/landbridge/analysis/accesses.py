"""How the stages of a PrimFunc access its buffers: the facts that fusion is decided by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from xdsl.dialects import arith, func, linalg, memref
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from landbridge.ir.prim_ops import ForallOp, StepsOp
from landbridge.ir.stages import Generic, Operand, view_generic
from landbridge.records import record


@record(frozen=True)
class Read:
    """An input operand of a generic stage."""

    stage: Generic
    operand: Operand


def input_count(op: linalg.ops.GenericOp) -> int:
    """Returns the number of inputs of a generic: operands minus outputs, of which it has one for each yielded value."""
    last = op.body.block.last_op
    assert last is not None  # a body ends in linalg.yield
    return len(op.operands) - len(last.operands)


def reads_of(buffer: SSAValue) -> list[Read] | None:
    """Returns the input operands of generic stages that read ``buffer``, one for each use.

    Returns None if another operation reads it, such as pad or load.
    """
    reads: list[Read] = []
    views: dict[Operation, Generic] = {}
    for use in buffer.uses:
        op = use.operation
        if isinstance(op, linalg.ops.GenericOp):
            if use.index < input_count(op):
                if op not in views:
                    views[op] = view_generic(op)
                stage = views[op]
                reads.append(Read(stage, stage.ins[use.index]))
        elif not (isinstance(op, linalg.ops.FillOp) and use.index > 0):
            return None
    return reads


def writers_of(buffer: SSAValue) -> list[Operation]:
    """Returns the operations that write ``buffer``.

    Operations whose regions may write it (StepsOp, ForallOp) are included, even if they only read it.
    """
    writers: list[Operation] = []
    for use in buffer.uses:
        op = use.operation
        if isinstance(op, linalg.ops.GenericOp):
            if use.index >= input_count(op):
                writers.append(op)
        elif isinstance(op, StepsOp | ForallOp) or (use.index > 0 and not isinstance(op, memref.LoadOp)):
            writers.append(op)
    return writers


def buffers_read(stage: Generic) -> Iterator[SSAValue]:
    """Yields every buffer that a generic stage reads, by operand or by a load of its body."""
    for operand in stage.ins:
        yield operand.buffer
    for op in stage.body.ops:
        if isinstance(op, memref.LoadOp):
            yield op.memref


def pointwise_stage(function: func.FuncOp) -> Generic | None:
    """Returns the stage of a PrimFunc that is a single elementwise generic and writes its last argument, else None."""
    body = function.body.block
    stage = body.first_op
    if not isinstance(stage, linalg.ops.GenericOp) or not isinstance(stage.next_op, func.ReturnOp):
        return None
    generic = view_generic(stage)
    if not generic.elementwise or generic.outs[0].buffer is not body.args[-1]:
        return None
    return None if generic.outs[0].scalar.first_use is not None else generic


def is_copy(stage: Generic) -> bool:
    """Returns whether the stage only moves elements."""
    return stage.body.first_op is stage.body.last_op


def work(stage: Generic) -> int:
    """Returns the number of operations in the body of ``stage``, without constants, indices and the yield."""
    return sum(not isinstance(op, arith.ConstantOp | linalg.ops.IndexOp) for op in stage.body.ops) - 1


def canonical(m: AffineMap, extents: tuple[int, ...]) -> AffineMap:
    """Returns ``m`` with the dimensions of extent 1 replaced by 0: equal accesses get equal maps."""
    dims = [AffineExpr.dimension(i) if e != 1 else AffineExpr.constant(0) for i, e in enumerate(extents)]
    return m.replace_dims_and_symbols(dims, (), m.num_dims, 0)


def reads_each_once(m: AffineMap, extents: tuple[int, ...]) -> bool:
    """Returns whether no two iterations of loops of ``extents`` read the same element through ``m``.

    Each loop with more than one iteration must be a plain index of the access.
    """
    plain = {e.position for e in m.results if isinstance(e, AffineDimExpr)}
    return all(i in plain or extent == 1 for i, extent in enumerate(extents))


def loops_visible(maps: Iterable[AffineMap], loops: int) -> bool:
    """Returns whether each of ``loops`` loops is a plain index of one of ``maps``, from which linalg infers
    its extent.
    """
    plain = {e.position for m in maps for e in m.results if isinstance(e, AffineDimExpr)}
    return len(plain) == loops


def identity_prefix(m: AffineMap, extents: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Returns how many leading loops index the leading axes of ``shape`` through ``m``, each over a whole axis and no
    other axis.

    A loop of one iteration may be replaced by the index 0.
    """
    n = 0
    for i, e in enumerate(m.results):
        plain = isinstance(e, AffineDimExpr) and e.position == i
        unit = isinstance(e, AffineConstantExpr) and e.value == 0 and i < len(extents) and extents[i] == 1
        if not (plain or unit) or shape[i] != extents[i]:
            break
        n += 1
    later = [used for e in m.results[n:] for used in e.used_dims()]
    return min([n, *later])


def follows(m: AffineMap) -> bool:
    """Returns whether ``m`` is the identity with some loops left out (a broadcast), so that vectors along a loop read
    vectors or one element.
    """
    plain = [e.position for e in m.results if isinstance(e, AffineDimExpr)]
    others = [e for e in m.results if not isinstance(e, AffineDimExpr)]
    return plain == sorted(set(plain)) and all(isinstance(e, AffineConstantExpr) for e in others)


def plain_reduction(stage: Generic) -> bool:
    """Returns whether a reduction is neither a window nor a contraction.

    It reads operands at plain loop indices only, and at most one access map depends on the reduced loops.
    """
    if any(not isinstance(e, AffineDimExpr | AffineConstantExpr) for o in stage.ins for e in o.map.results):
        return False
    varying = {canonical(o.map, stage.extents) for o in stage.ins if any(_reduced(stage, e) for e in o.map.results)}
    return len(varying) <= 1


def _reduced(stage: Generic, e: AffineExpr) -> bool:
    return isinstance(e, AffineDimExpr) and stage.iterators[e.position] == "r"


def iterations(stage: Generic) -> int:
    """Returns how often the body of a stage runs."""
    return prod(stage.extents)
