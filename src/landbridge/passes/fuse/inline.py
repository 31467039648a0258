"""Inlines an elementwise stage into the stage that reads its result."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import linalg, memref
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)
from xdsl.rewriter import InsertPoint, Rewriter

from landbridge.analysis.accesses import (
    Read,
    buffers_read,
    canonical,
    input_count,
    is_copy,
    iterations,
    loops_visible,
    reads_each_once,
    reads_of,
    work,
    writers_of,
)
from landbridge.errors import CompileError
from landbridge.ir.kernel_attributes import set_loop_extents
from landbridge.ir.prim_ops import GenericOp
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.stages import Generic, Operand, is_identity, view_generic
from landbridge.ir.traversal import operations
from landbridge.ir.types import shape_of
from landbridge.passes.fuse.limits import MAX_BODY_OPS, MAX_OPERANDS, MOST_READS_IN_PLACE
from landbridge.passes.fuse.vectors import composed, computes_addresses, keeps_vectors
from landbridge.passes.rewrites import rewrite
from landbridge.sizes.size import Extent, Size, expected_size, product, same


def can_inline(producer: Generic, reads: list[Read], budget: int = 0) -> bool:
    """Returns whether inlining ``producer`` into the stage that makes ``reads`` repeats no expensive work.

    Work of up to ``budget`` (as in ``keeps_vectors``) may lose its vectors.
    """
    if not reads or len({r.stage.op for r in reads}) != 1:
        return False
    stage = reads[0].stage
    maps = {canonical(r.operand.map, stage.extents): r.operand.map for r in reads}
    if len(producer.ins) * len(maps) + len(stage.ins) > MAX_OPERANDS:
        return False
    if work(producer) * len(maps) + work(stage) > MAX_BODY_OPS:
        return False
    if stage.reduces:
        # The kernel generator recognizes contractions as a pattern; only plain reductions take a prologue.
        at = reads[0].operand.map
        if len(stage.ins) == 2 and len(reads) == 1 and is_copy(producer):
            return bool(_is_begin_of_rows(producer) or reads_copied_in_place(producer, stage, reads[0].operand))
        if len(stage.ins) != 1 or not reads_each_once(at, stage.extents) or computes_addresses(producer):
            return False
        accesses = [composed(p.map, at) for p in producer.ins] + [o.map for o in stage.outs]
        return loops_visible(accesses, len(stage.extents))
    if not is_copy(producer) and expected_size(len(maps) * iterations(stage)) > expected_size(iterations(producer)):
        return False
    return keeps_vectors(producer, stage, [r.operand for r in reads], budget)


@rewrite("fuse.row_begin_into_contraction", "a contraction reads the begin of longer lines instead of a copy")
def _is_begin_of_rows(copy: Generic) -> bool:
    """Returns whether ``copy`` has the first elements of longer lines, as many as a run decides: those of a window.

    A contraction reads them there in the same order, and nothing is gained by a copy. Images, of several lines each,
    are copied where that makes another layout of them.
    """
    (source,), shape = copy.ins, shape_of(copy.ins[0].buffer.type)
    if not is_identity(source.map, copy.extents) or len(shape) < 2:
        return False
    return shape[:-1] == copy.extents[:-1] and isinstance(copy.extents[-1], Size) and isinstance(shape[-1], int)


@rewrite("fuse.copy_into_contraction", "a contraction reads the source of a transpose or slice instead of a copy")
def reads_copied_in_place(copy: Generic, contraction: Generic, read: Operand) -> bool:
    """Returns whether ``contraction`` should read the source of ``copy`` directly, through ``read``, instead of the
    copy.

    ``copy`` moves a part of a cache, for example, or transposes it. Reading in place pays if each element is read few
    times, and if the last axis of the source is indexed as that of the copy or of the other operand.
    """
    if len(copy.ins) != 1:
        return False
    at = composed(copy.ins[0].map, read.map)
    loops = [e.position for e in at.results if isinstance(e, AffineDimExpr)]
    others = [e for e in at.results if not isinstance(e, AffineDimExpr)]
    if len(set(loops)) < len(loops) or not all(isinstance(e, AffineConstantExpr) for e in others):
        return False
    again = [extent for loop, extent in enumerate(contraction.extents) if loop not in loops]
    lengths = [contraction.extents[loop] for loop in loops]
    if expected_size(product(_number_of_reads(extent, lengths) for extent in again)) > MOST_READS_IN_PLACE:
        return False
    (other,) = (o for o in contraction.ins if o is not read)
    last = at.results[-1]
    return last == read.map.results[-1] or last == other.map.results[-1]


def _number_of_reads(extent: Extent, lengths: Sequence[Extent]) -> Extent:
    """Returns how often a loop of ``extent`` reads each element of what has loops of ``lengths``.

    An open number counts as its least if nothing that is read has as many elements: it is that of the steps of a
    decoder, which reads a cache of another length, mostly for a single step.
    """
    if not isinstance(extent, Size) or any(same(extent, length) for length in lengths):
        return extent
    return max(extent.low or 1, 1)


@rewrite("fuse.temporary", "an elementwise stage is inlined into the stage that reads its temporary")
def inline_temporaries(block: Block, budget: int = 0) -> None:
    """Inline every elementwise stage of a PrimFunc's block whose temporary one later stage reads, where it pays."""
    changed = True
    while changed:
        changed = False
        op = block.first_op
        while op is not None:
            following = op.next_op
            if isinstance(op, linalg.ops.GenericOp) and _inline_stage(op, budget):
                changed = True
                if following is not None and following.parent is None:
                    following = block.first_op  # the stage that read the temporary was replaced
            op = following


def _inline_stage(op: linalg.ops.GenericOp, budget: int) -> bool:
    target = op.operands[-1]
    if (
        len(op.operands) != input_count(op) + 1
        or not isinstance(target.owner, memref.AllocOp)
        or writers_of(target) != [op]
    ):
        return False
    producer = view_generic(op)
    if not producer.elementwise or producer.outs[0].scalar.first_use is not None:
        return False
    reads = reads_of(target)
    if not reads or not can_inline(producer, reads, budget) or _overwritten(producer, reads[0].stage.op):
        return False
    substitute(producer, reads[0].stage, target)
    Rewriter.erase_op(op)
    Rewriter.erase_op(target.owner)
    return True


def _overwritten(producer: Generic, reader: Operation) -> bool:
    """Returns whether an input of the producer is written by an operation after it, up to and including ``reader``."""
    for buffer in buffers_read(producer):
        for writer in writers_of(buffer):
            if writer is reader or (producer.op.is_before_in_block(writer) and writer.is_before_in_block(reader)):
                return True
    return False


def substitute(producer: Generic, consumer: Generic, buffer: SSAValue) -> None:
    """Rebuild ``consumer`` with the producer's body in place of its reads of ``buffer``, the producer's output.

    The producer must not be used afterwards: its operations are moved where they are needed once.
    """
    block = consumer.body
    other_reads = [o for o in consumer.ins if o.buffer is not buffer]
    scalars: dict[tuple[SSAValue, AffineMap], SSAValue] = {}
    accesses: list[tuple[SSAValue, AffineMap]] = []
    for operand in other_reads:
        key = (operand.buffer, canonical(operand.map, consumer.extents))
        if key in scalars:
            operand.scalar.replace_all_uses_with(scalars[key])
            block.erase_arg(operand.scalar)
        else:
            scalars[key] = operand.scalar
            accesses.append((operand.buffer, operand.map))
    count = len(accesses) + sum(o.buffer is buffer for o in consumer.ins)
    results: dict[AffineMap, SSAValue] = {}
    maps = {canonical(o.map, consumer.extents) for o in consumer.ins if o.buffer is buffer}
    take = _move_body if len(maps) == 1 else _copy_body
    added: list[tuple[SSAValue, AffineMap]] = []
    start = block.first_op
    assert start is not None  # a body ends in linalg.yield
    for operand in consumer.ins:
        if operand.buffer is not buffer:
            continue
        at = canonical(operand.map, consumer.extents)
        if at not in results:
            mapping: dict[SSAValue, SSAValue] = {}
            for source in producer.ins:
                access = composed(source.map, operand.map)
                key = (source.buffer, canonical(access, consumer.extents))
                if key not in scalars:
                    scalars[key] = block.insert_arg(source.scalar.type, count + len(added))
                    added.append((source.buffer, access))
                mapping[source.scalar] = scalars[key]
            results[at] = take(producer, operand.map, mapping, start)
        operand.scalar.replace_all_uses_with(results[at])
        block.erase_arg(operand.scalar)
        count -= 1
    rebuild(consumer.op, [*accesses, *added], [(o.buffer, o.map) for o in consumer.outs])


def _copy_body(producer: Generic, at: AffineMap, mapping: dict[SSAValue, SSAValue], before: Operation) -> SSAValue:
    """Copy the operations of the producer's body before ``before``; returns the value that the body yields.

    ``mapping`` maps the scalar arguments of the body to values of the consumer's body; results of copied operations are
    added to it. The producer's loop index d becomes result d of ``at``, over the consumer's loops.
    """
    builder = Builder(InsertPoint.before(before))
    scalar = ScalarBuilder(builder)
    for op in producer.body.ops:
        if isinstance(op, linalg.ops.YieldOp):
            return mapping.get(op.operands[0], op.operands[0])
        if isinstance(op, linalg.ops.IndexOp):
            mapping[op.result] = _index(scalar, at.results[op.dim.value.data]).ssa
        else:
            builder.insert(op.clone(mapping) if op.regions else op.clone_without_regions(mapping))
    raise CompileError("the body of a stage has no linalg.yield")


def _move_body(producer: Generic, at: AffineMap, mapping: dict[SSAValue, SSAValue], before: Operation) -> SSAValue:
    """Move the operations of the producer's body before ``before``; returns the value that the body yields.

    Arguments as in ``_copy_body``. The producer is left without a usable body.
    """
    for scalar, value in mapping.items():
        scalar.replace_all_uses_with(value)
    block = before.parent
    assert block is not None  # the first operation of a body
    for op in operations(producer.body):
        if isinstance(op, linalg.ops.YieldOp):
            return op.operands[0]
        if isinstance(op, linalg.ops.IndexOp):
            index = _index(ScalarBuilder(Builder(InsertPoint.before(before))), at.results[op.dim.value.data])
            op.result.replace_all_uses_with(index.ssa)
        else:
            producer.body.detach_op(op)
            block.insert_op_before(op, before)
    raise CompileError("the body of a stage has no linalg.yield")


_INDEX_KINDS = {AffineBinaryOpKind.Add: "add", AffineBinaryOpKind.Mul: "mul", AffineBinaryOpKind.FloorDiv: "floordiv"}


def _index(s: ScalarBuilder, e: AffineExpr) -> Value:
    """Emit the affine expression ``e`` over the loops of a stage and return its value, an index.

    Raises CompileError for an expression with a symbol.
    """
    if isinstance(e, AffineDimExpr):
        return s.index(e.position)
    if isinstance(e, AffineConstantExpr):
        return s.const(e.value, "index")
    if not isinstance(e, AffineBinaryOpExpr):
        raise CompileError(f"{e} is not an index expression of a stage: it has a symbol")
    lhs, rhs = _index(s, e.lhs), _index(s, e.rhs)
    if e.kind in _INDEX_KINDS:
        return s.binary(_INDEX_KINDS[e.kind], lhs, rhs)
    if e.kind == AffineBinaryOpKind.Mod:
        return lhs - s.binary("floordiv", lhs, rhs) * rhs
    return 0 - s.binary("floordiv", 0 - lhs, rhs)


def rebuild(
    op: linalg.ops.GenericOp,
    ins: Sequence[tuple[SSAValue, AffineMap]],
    outs: Sequence[tuple[SSAValue, AffineMap]],
    extents: tuple[int, ...] | None = None,
) -> linalg.ops.GenericOp:
    """Replace the generic ``op`` by a new one with its body and attributes and the given operands; returns the new one.

    ``ins`` and ``outs`` are buffers with their access maps. The body is moved, and its arguments must fit the operands
    already. With ``extents``, the new generic has parallel loops of these extents only. ``op`` is erased.
    """
    iterators = op.iterator_types.data if extents is None else [IteratorTypeAttr.parallel()] * len(extents)
    new = GenericOp.over(
        [b for b, _ in ins],
        [b for b, _ in outs],
        op.detach_region(0),
        [AffineMapAttr(m) for _, m in (*ins, *outs)],
        iterators,
    )
    new.attributes.update(op.attributes)
    if extents is not None:
        set_loop_extents(new, extents)
    block = op.parent
    assert isinstance(block, Block)
    block.insert_op_before(new, op)
    Rewriter.erase_op(op)
    return new


@rewrite("fuse.stage_operands", "equal and unused operands of a stage are removed")
def tidy_operands(stage: Generic) -> None:
    """Merge inputs of a stage with equal buffers and access maps, and remove inputs that the body does not use.

    The generic is rebuilt if that removes any; ``stage`` must not be used afterwards.
    """
    seen: dict[tuple[SSAValue, AffineMap], Operand] = {}
    operands: list[tuple[SSAValue, AffineMap]] = []
    for operand in stage.ins:
        key = (operand.buffer, canonical(operand.map, stage.extents))
        if key in seen:
            operand.scalar.replace_all_uses_with(seen[key].scalar)
        if operand.scalar.first_use is None:
            stage.body.erase_arg(operand.scalar)
        else:
            seen[key] = operand
            operands.append((operand.buffer, operand.map))
    if len(operands) < len(stage.ins):
        rebuild(stage.op, operands, [(o.buffer, o.map) for o in stage.outs])
