"""Copies of columns, which a task makes contiguous before its rows are multiplied with them.

``strided_columns.py`` chooses which columns are copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from landbridge.passes.lower.access import ElementAccess, Linear
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.lane_choice import lies_along_sums
from landbridge.passes.lower.loops_around import loops_around
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.operands import Tile
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule
from landbridge.records import record


@record(frozen=True)
class CopiedColumns:
    """Pairs of an access that is copied and the access that reads its copy.

    The index of the second counts from column 0, although the copy holds only the columns of one task.
    """

    copies: tuple[tuple[ElementAccess, ElementAccess], ...]

    @property
    def memories(self) -> list[SSAValue]:
        """Returns the memory of the copies."""
        return [copy.buffer for _, copy in self.copies]

    def nest(self, nest: Nest) -> Nest:
        """Returns ``nest`` with a reduction that reads the copies."""
        main = nest.stages[0]
        reads = tuple(next((copy for r, copy in self.copies if r is read), read) for read in main.reads)
        return Nest(nest.dims, [replace(main, reads=reads), *nest.stages[1:]], nest.bounds)

    def fill(self, code: Code, emitter: NestEmitter, first: Index, n_run: Run) -> None:
        """Copy one tile of ``n_run``, from vector ``first`` on, and set the origin at which ``emitter`` finds it."""
        operands, nest = emitter.operands, emitter.nest
        tile = Tile(0, 1, first, n_run.tile, n_mask=n_run.mask)
        before = code.mul(first, operands.lanes)
        for _, copy in self.copies:
            operands.origins[copy.buffer] = before

        inner = emitter.sched.inner
        transposed = [pair for pair in self.copies if lies_along_sums(pair[0], _lane_of(emitter.sched), inner)]
        straight = [pair for pair in self.copies if pair not in transposed]

        def copy_iteration() -> None:
            operands.forget()
            for (read, copy), n in product(straight, range(n_run.tile)):
                vector = operands.read(read, tile, 0, n)
                code.store_vector(vector, copy.buffer, operands.where(copy, tile, 0, n), operands.lanes, 0)
            operands.forget()

        def copy_transposed() -> None:
            for pair, n in product(transposed, range(n_run.tile)):
                _copy_transposed(code, emitter, tile, n, *pair)

        if straight:
            loops_around(code, nest, inner, operands.env, copy_iteration)
        if transposed:
            loops_around(code, nest, inner[:-1], operands.env, copy_transposed)


def _lane_of(sched: Schedule) -> int:
    assert sched.lane is not None
    return sched.lane


def _copy_transposed(
    code: Code, emitter: NestEmitter, tile: Tile, n: int, read: ElementAccess, copy: ElementAccess
) -> None:
    """Copy column ``n``, whose memory is contiguous along the last reduction loop, by transposing blocks of ``lanes``
    iterations.
    """
    operands, lanes, last = emitter.operands, emitter.operands.lanes, emitter.sched.inner[-1]
    extent = emitter.nest.dims[last].extent
    assert isinstance(extent, int)  # copied columns have no open extents

    def block(first: Index, count: int) -> None:
        operands.env[last] = first
        operands.forget()
        copies = [(0, n, (last, i)) for i in range(count)]
        operands.merge([read], tile, copies)
        for each in copies:
            vector = operands.read(read, tile, *each)
            code.store_vector(vector, copy.buffer, operands.where(copy, tile, *each), lanes, 0)
        operands.forget()
        del operands.env[last]

    def whole(first: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
        block(first, lanes)
        return []

    end = extent - extent % lanes
    if end:
        code.loop(0, end, lanes, [], whole)
    if extent % lanes:
        block(end, extent % lanes)


def copied_columns(
    code: Code, nest: Nest, sched: Schedule, strided: Sequence[ElementAccess], n_run: Run
) -> CopiedColumns:
    """Allocate memory on the stack for one tile of ``n_run`` of each access in ``strided``; returns the pairs."""
    assert sched.lane is not None and sched.n_dim is not None
    pitch = n_run.tile * sched.lanes
    coeffs = {sched.n_dim: sched.lanes, sched.lane: 1}
    for d in reversed(sched.inner):
        coeffs[d] = pitch
        pitch *= nest.dims[d].extent
    memories = [code.add_op(memref.AllocaOp.get(r.element, alignment=64, shape=[pitch])) for r in strided]
    index = Linear(0, coeffs)
    return CopiedColumns(
        tuple((r, replace(r, buffer=memory, index=index)) for r, memory in zip(strided, memories, strict=True))
    )
