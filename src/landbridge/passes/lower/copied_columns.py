"""Columns that a task copies to where their vectors lie side by side, before its rows multiply with them; of which
columns, ``apart_columns.py`` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from landbridge.passes.lower.access import ElementAccess, Linear
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.loops_around import loops_around
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.operands import Tile
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule
from landbridge.records import record


@record(frozen=True)
class CopiedColumns:
    """Each access that is copied, and the one that reads its copy instead, as if that had all columns."""

    copies: tuple[tuple[ElementAccess, ElementAccess], ...]

    @property
    def rooms(self) -> list[SSAValue]:
        """The memory of the copies."""
        return [copy.buffer for _, copy in self.copies]

    def nest(self, nest: Nest) -> Nest:
        """``nest``, of which the reduction reads the copies."""
        main = nest.stages[0]
        reads = tuple(next((copy for r, copy in self.copies if r is read), read) for read in main.reads)
        return Nest(nest.dims, [replace(main, reads=reads), *nest.stages[1:]], nest.bounds)

    def fill(self, code: Code, emitter: NestEmitter, first: Index, columns: Run) -> None:
        """Copy the columns of ``columns`` from vector ``first`` on, and have ``emitter`` find them."""
        operands, nest = emitter.operands, emitter.nest
        tile = Tile(0, 1, first, columns.tile, column_mask=columns.mask)
        before = code.mul(first, operands.lanes)
        for _, copy in self.copies:
            operands.origins[copy.buffer] = before

        def copy_turn() -> None:
            operands.forget()
            for read, copy in self.copies:
                for n in range(columns.tile):
                    vector = operands.read(read, tile, 0, n)
                    code.store_vector(vector, copy.buffer, operands.where(copy, tile, 0, n), operands.lanes, 0)
            operands.forget()

        loops_around(code, nest, emitter.sched.inner, operands.env, copy_turn)


def copied_columns(
    code: Code, nest: Nest, sched: Schedule, apart: Sequence[ElementAccess], columns: Run
) -> CopiedColumns:
    """Room on the stack for the tiles of ``columns`` of each access that lies ``apart``."""
    assert sched.lane is not None and sched.columns is not None
    pitch = columns.tile * sched.lanes
    coeffs = {sched.columns: sched.lanes, sched.lane: 1}
    for d in reversed(sched.inner):
        coeffs[d] = pitch
        pitch *= nest.dims[d].extent
    rooms = [code.add_op(memref.AllocaOp.get(r.element, alignment=64, shape=[pitch])) for r in apart]
    index = Linear(0, coeffs)
    return CopiedColumns(tuple((r, replace(r, buffer=room, index=index)) for r, room in zip(apart, rooms, strict=True)))
