"""Lowers ``lb.forall``: independent iterations of scalar code with loops and branches of its own, on flat buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith, linalg, memref, scf
from xdsl.ir import Block, Operation, SSAValue

from landbridge.errors import CodegenError
from landbridge.ir.kernel_attributes import first_scratch
from landbridge.ir.prim_ops import ForallOp
from landbridge.ir.stages import PrimView
from landbridge.ir.types import element_count, item_bytes, shape_of
from landbridge.passes.lower.body import copied, location_of
from landbridge.passes.lower.code import Code, Index, Where
from landbridge.passes.lower.cost import TASKS
from landbridge.passes.lower.row_memory import lowered_type
from landbridge.passes.lower.scratch import part_count
from landbridge.sizes.size import Extent

#: A buffer of the lowered function and a location in it.
_Placed = Callable[[SSAValue, Where], tuple[SSAValue, Where]]


def emit_forall(
    code: Code,
    prim: PrimView,
    stage: ForallOp,
    vector_bytes: int,
    buffers: dict[SSAValue, SSAValue],
    begin: Index,
    end: Index,
) -> Extent:
    """Emit tasks ``begin .. end`` of ``stage``; returns the number of tasks, each of which has its own part of the
    scratch.

    ``buffers`` maps the memrefs of the PrimFunc to flat ones. Task t runs iterations t, t + 64, t + 128 and so on.
    Loops that fill a whole buffer use vectors of ``vector_bytes``.
    """
    tasks = part_count(stage.iterations)
    parts = _parts(prim, buffers)

    def task(t: SSAValue, _: Sequence[SSAValue]) -> list[SSAValue]:
        def placed(buffer: SSAValue, where: Where) -> tuple[SSAValue, Where]:
            if buffer not in parts:
                return buffers[buffer], where
            assert not isinstance(where, tuple)  # scratch is flat
            return parts[buffer], code.add(code.mul(t, element_count(shape_of(buffer.type))), where)

        if isinstance(stage.iterations, int) and stage.iterations <= TASKS.enough:
            _Iteration(code, stage, placed, vector_bytes).emit(t)
        else:
            _iterations(code, stage, placed, t, TASKS.enough, vector_bytes)
        return []

    code.loop(begin, end, 1, [], task)
    return tasks


def emit_forall_in_order(code: Code, stage: ForallOp, buffers: dict[SSAValue, SSAValue]) -> int:
    """Emit all iterations of ``stage``, one after the other; returns the number of tasks: 1, or 0 if there are no
    iterations.
    """
    _iterations(code, stage, lambda buffer, where: (buffers[buffer], where), 0, 1)
    return int(stage.iterations != 0)


def _parts(prim: PrimView, buffers: dict[SSAValue, SSAValue]) -> dict[SSAValue, SSAValue]:
    """Returns, for each temporary, the operand that holds its parts; raises CodegenError if there are none."""
    if not prim.temporaries:
        return {}
    first = first_scratch(prim.function)
    if first is None:
        raise CodegenError(f"@{prim.function.sym_name.data} has no operands for its temporaries: run the pass scratch")
    arguments = prim.function.body.block.args[first : first + len(prim.temporaries)]
    return {t: buffers[a] for t, a in zip(prim.temporaries, arguments, strict=True)}


def _iterations(code: Code, stage: ForallOp, placed: _Placed, first: Index, step: int, vector_bytes: int = 0) -> None:
    def run(i: SSAValue, _: Sequence[SSAValue]) -> list[SSAValue]:
        _Iteration(code, stage, placed, vector_bytes).emit(i)
        return []

    code.loop(first, stage.iterations, step, [], run)


class _Iteration:
    """Emits one iteration: a copy of the region on the buffers of the lowered function. ``vector_bytes`` is 0 if there
    are no vectors.
    """

    def __init__(self, code: Code, stage: ForallOp, placed: _Placed, vector_bytes: int) -> None:
        self._code, self._stage, self._placed, self._vector_bytes = code, stage, placed, vector_bytes
        inside = stage.body.block.args[1:]
        self._buffers: dict[SSAValue, SSAValue] = dict(zip(inside, stage.buffers, strict=True))
        self._known: dict[SSAValue, SSAValue] = {}

    def emit(self, number: SSAValue) -> None:
        """Emit iteration ``number``."""
        block = self._stage.body.block
        self._known[block.args[0]] = number
        for op in block.ops:
            self._operation(op)

    def _region(self, block: Block, arguments: Sequence[SSAValue] = ()) -> list[SSAValue]:
        """Emit the code of ``block``; returns the operands of its terminator."""
        self._known.update(zip(block.args, arguments, strict=True))
        *ops, last = block.ops
        for op in ops:
            self._operation(op)
        return self._values(last.operands)

    def _values(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        return [self._known[v] for v in values]

    def _operation(self, op: Operation) -> None:
        code = self._code
        match op:
            case memref.LoadOp() | memref.StoreOp():
                self._access(op)
                return
            case linalg.ops.FillOp():
                self._fill(op)
                return
            case scf.ForOp():
                low, high, step, *carried = self._values(op.operands)
                inside = op.body.block
                results = code.loop(low, high, step, carried, lambda i, v: self._region(inside, [i, *v]))
            case scf.WhileOp():
                before, after = op.before_region.block, op.after_region.block
                results = code.repeat(
                    self._values(op.arguments),
                    lambda v: self._region(before, v),
                    lambda v: self._region(after, v),
                )
            case scf.IfOp():
                then, otherwise = op.true_region, op.false_region
                results = code.branch(
                    self._known[op.cond],
                    lambda: self._region(then.block),
                    lambda: self._region(otherwise.block) if otherwise.blocks else [],
                )
            case _:
                results = [copied(code, op, self._values(op.operands), 1)]
        self._known.update(zip(op.results, results, strict=True))

    def _access(self, op: memref.LoadOp | memref.StoreOp) -> None:
        code, buffer = self._code, self._buffers[op.memref]
        memory, where = self._placed(buffer, location_of(code, op, self._values(op.indices)))
        if isinstance(op, memref.StoreOp):
            code.store(self._known[op.value], memory, where)
        else:
            self._known[op.results[0]] = code.load(memory, where, cast(Operation, op).results[0].type)

    def _fill(self, op: linalg.ops.FillOp) -> None:
        code, constant = self._code, op.inputs[0].owner
        if not isinstance(constant, arith.ConstantOp):
            raise CodegenError("linalg.fill of a value that is not a constant")
        buffer, kind = self._buffers[op.outputs[0]], op.inputs[0].type
        *rows, extent = shape_of(lowered_type(buffer.type))
        lanes = max(self._vector_bytes // item_bytes(buffer.type), 1)
        vectors = extent // lanes

        def store(row: Sequence[Index], first: Index, active: Index) -> None:
            memory, where = self._placed(buffer, (*row, first) if row else first)
            if lanes == 1:
                code.store(self._known[op.inputs[0]], memory, where)
            else:
                code.store_vector(code.splat(constant.value, kind, lanes), memory, where, lanes, active)

        def fill(row: Sequence[Index]) -> None:
            def whole(i: SSAValue, _: Sequence[SSAValue]) -> list[SSAValue]:
                store(row, code.mul(i, lanes), 0)
                return []

            code.loop(0, vectors, 1, [], whole)
            left = extent - vectors * lanes
            if left != 0:
                store(row, vectors * lanes, left)

        def in_row(row: SSAValue, _: Sequence[SSAValue]) -> list[SSAValue]:
            fill([row])
            return []

        if rows:
            code.loop(0, rows[0], 1, [], in_row)
        else:
            fill([])
