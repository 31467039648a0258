"""Sums of a task that are computed block by block: their totals in scratch, and what is emitted tile by tile."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from xdsl.ir import Attribute, SSAValue

from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.combiners import fold
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.operands import Tile
from landbridge.passes.lower.reduction import Reduction, SumBlock
from landbridge.passes.lower.reduction_iterations import Slots
from landbridge.passes.lower.schedule import Schedule
from landbridge.records import record


@record(frozen=True)
class Totals:
    """Scratch memory for the sums of ``m_extent`` rows, each of ``n_size`` vectors of ``lanes`` elements."""

    n_size: int
    lanes: int
    scratch: SSAValue
    m_extent: int

    def at(self, code: Code, row: Index, n: int) -> Index:
        """Returns the offset in scratch, in elements, of vector ``n`` of ``row``."""
        return code.add(code.mul(row, self.n_size * self.lanes), n * self.lanes)

    def clear(self, code: Code, start: Attribute, element: Attribute, rows: Index) -> None:
        """Emit stores of ``start``, of type ``element``, to all sums of ``rows`` rows."""
        value = code.splat(start, element, self.lanes)

        def one(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            for n in range(self.n_size):
                code.store_vector(value, self.scratch, self.at(code, i, n), self.lanes, 0)
            return []

        code.loop(0, rows, 1, [], one)


class PassEmitter(NestEmitter):
    """Emits passes. ``before`` is the number of rows in scratch before the first row of the pass."""

    def __init__(
        self, code: Code, nest: Nest, sched: Schedule, buffers: dict[SSAValue, SSAValue], totals: Totals
    ) -> None:
        super().__init__(code, nest, sched, buffers, {})
        self.totals = totals
        self.before: Index = 0

    def row_of(self, t: Tile, m: int) -> Index:
        """Returns the row in scratch of row ``m`` of a tile."""
        return self.code.add(self.code.add(self.before, t.m_start), m)


class RestEmitter(PassEmitter):
    """Emits the stages after the reduction, which read the totals."""

    def tile(self, t: Tile) -> None:
        """Emit the stages of one tile, and the stores."""
        element = self.nest.stages[0].writes[0].element
        self.operands.forget()
        registers: Slots = {}
        for m, n in product(range(t.m_size), range(t.n_size)):
            at = self.totals.at(self.code, self.row_of(t, m), n)
            registers[m, n, 0, 0] = self.code.load_vector(self.totals.scratch, at, element, self.totals.lanes, 0)
        for m, n in product(range(t.m_size), range(t.n_size)):
            self.point(t, m, n, registers)


class TermsEmitter(PassEmitter):
    """Adds the terms of one block to the totals. ``block``: its loop, first iteration, end, and greatest length."""

    block: tuple[int, Index, Index, int]

    def tile(self, t: Tile) -> None:
        """Emit one block of the sums of one tile."""
        code, main = self.code, self.nest.reduction
        assert main is not None
        dim, low, high, iterations = self.block
        self.operands.forget()
        block = SumBlock(dim, low, high, self.prefetching(t, dim, low, iterations))
        reduction = Reduction(code, self.nest, self.sched, self.peeling, self.operands, t, block=block)
        for (m, n, _, _), value in reduction.emit().items():
            at = self.totals.at(code, self.row_of(t, m), n)
            total = code.load_vector(self.totals.scratch, at, main.writes[0].element, self.totals.lanes, 0)
            code.store_vector(fold(code, main, total, value), self.totals.scratch, at, self.totals.lanes, 0)

    def prefetching(self, t: Tile, dim: int, low: Index, iterations: int) -> Callable[[int], None]:
        """Returns a function that emits the prefetches of tile ``t`` before the innermost loop, which it takes: none
        here.
        """
        return lambda d: None
