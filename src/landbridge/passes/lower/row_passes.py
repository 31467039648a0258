"""Products whose columns L1 does not hold: many tiles of rows compute one block of each sum, then the next block.

A tile of rows reads its columns from first to last, and the next tile reads them again, from L2. If all columns are
megabytes, the first tile of all waits for memory. But sums are added up in blocks (``sum_blocks.py``), and the columns
of one block are few. Therefore all tiles of rows of several *passes* add their terms of one block, and the totals stay
in scratch. Each tile prefetches its share of the next block's columns, so that memory is read all the time and no tile
waits for it. The order of additions is the same as without passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.cost import BLOCK_TOTALS, TASKS
from landbridge.passes.lower.loops_around import loops_around
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.operands import Tile
from landbridge.passes.lower.peeling import Peeling
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule, VectorUnit
from landbridge.passes.lower.sum_blocks import block_of_sums
from landbridge.passes.lower.sum_scratch import PassEmitter, RestEmitter, TermsEmitter, Totals
from landbridge.records import record
from landbridge.sizes.size import Extent


@record(frozen=True)
class RowPasses:
    """How a nest is computed block by block.

    ``dim`` is the reduction loop that is cut into blocks of ``iterations``; the reduction loops ``around`` enclose it.
    ``across`` are the outer loops that columns do not depend on; each of their iterations is a pass over all rows.
    ``tasks`` is the number of tasks that is enough.
    """

    dim: int
    iterations: int
    around: tuple[int, ...]
    across: tuple[int, ...]
    tasks: int


def row_passes(nest: Nest, sched: Schedule, machine: VectorUnit, m_runs: Sequence[Run]) -> RowPasses | None:
    """Returns how ``nest`` is computed block by block over ``m_runs``; None if it should not or cannot be.

    It should be if its columns come from beyond L2, or if passes repeat them and L1 does not hold a tile of them.
    """
    main = nest.reduction
    if main is None or sched.lane is None or sched.m_dim is None or sched.horizontal or not machine.prefetches:
        return None
    if sched.n_dim is None or sched.partial_sums > 1 or sched.iterations > 1 or len(sched.inner) < 2:
        return None
    if not all(isinstance(d.extent, int) for d in nest.dims):
        return None
    peeling = Peeling(nest, sched)
    dim, iterations = block_of_sums(nest, sched, peeling)
    columns = columns_of(nest, sched)
    if dim is None or any(r.index.rest for r in columns):
        return None
    around = sched.inner[: sched.inner.index(dim)]
    if any(d == b.inner for d in (*around, dim) for b in nest.bounds) or _is_clipped(nest, (*around, dim)):
        return None
    across = tuple(d for d in sched.outer if not any(r.uses(d) for r in columns))
    passes = math.prod(nest.dims[d].extent for d in across)
    groups = math.prod(nest.dims[d].extent for d in sched.outer if d not in across)
    enough_tiles = passes * sum(run.count for run in m_runs) >= BLOCK_TOTALS.tiles_of_a_pass
    at_edges = any(peeling.is_peeled(run) for run in m_runs)  # rows cannot be divided into tasks then
    enough_tasks = bool(across) or at_edges or groups * sum(run.count for run in sched.n_runs) >= TASKS.enough_beyond_l2
    tile = sched.n_runs[0].tile
    fits = nest.dims[sched.m_dim].extent * tile * sched.lanes <= BLOCK_TOTALS.elements_of_a_task
    beyond_l2 = machine.beyond_l2(nest, sched.lane, sched.m_dim) > 0
    next_cache = bool(across) and tile > machine.l1_columns(nest, sched.lane, sched.lanes, sched.inner)
    if not (enough_tiles and enough_tasks and fits and (beyond_l2 or next_cache)):
        return None
    return RowPasses(dim, iterations, around, across, TASKS.enough_beyond_l2 if beyond_l2 else TASKS.enough)


def _is_clipped(nest: Nest, dims: Sequence[int]) -> bool:
    """Returns whether padding clips iterations of ``dims``, so that blocks would begin elsewhere than without
    passes.
    """
    assert nest.reduction is not None
    guards = (g for r in nest.reduction.reads if isinstance(r, ElementAccess) for g in r.guards)
    return any(g.index.uses(d) for g in guards for d in dims)


def columns_of(nest: Nest, sched: Schedule) -> list[ElementAccess]:
    """Returns the reads that depend on the lane loop and not on the row loop: all rows share their vectors."""
    assert nest.reduction is not None and sched.lane is not None and sched.m_dim is not None
    reads = (r for r in nest.reduction.reads if isinstance(r, ElementAccess))
    return [r for r in reads if r.uses(sched.lane) and not r.varies(sched.m_dim)]


def totals_memory(code: Code, nest: Nest) -> SSAValue:
    """Allocate the totals of a task. They have the same size in all kernels, so that kernels can share code."""
    main = nest.reduction
    assert main is not None
    return code.add_op(
        memref.AllocaOp.get(main.writes[0].element, alignment=64, shape=[BLOCK_TOTALS.elements_of_a_task])
    )


class BlockTasks:
    """The tasks of one run of column tiles, which are computed block by block; each pass is over all ``m_runs``."""

    def __init__(
        self,
        code: Code,
        nest: Nest,
        sched: Schedule,
        how: RowPasses,
        n_run: Run,
        m_runs: Sequence[Run],
        buffers: dict[SSAValue, SSAValue],
        scratch: SSAValue,
    ) -> None:
        self._code, self._nest, self._how, self._n_run, self._m_runs = code, nest, how, n_run, m_runs
        self._groups = [nest.dims[d].extent for d in sched.outer if d not in how.across]
        self._across = [nest.dims[d].extent for d in how.across]
        assert sched.m_dim is not None
        self._rows_each = nest.dims[sched.m_dim].extent
        self._passes = math.prod(self._across)
        self._most = min(self._passes, BLOCK_TOTALS.elements_of_a_task // (n_run.tile * self._rows_each * sched.lanes))
        totals = Totals(n_run.tile, sched.lanes, scratch, self._most * self._rows_each)
        self._terms = _PrefetchingTerms(code, nest, sched, buffers, totals)
        self._rest = RestEmitter(code, nest, sched, buffers, totals)
        tasks = n_run.count * math.prod(self._groups)
        self._parts = 1
        while tasks * self._parts < how.tasks and 2 * self._parts <= self._passes:
            self._parts *= 2
        self._each = -(-self._passes // self._parts)
        self._parts = -(-self._passes // self._each)
        self.count: Extent = tasks * self._parts

    def emit(self, code: Code, first: Index, last: Index) -> None:
        """Emit tasks ``first .. last``; those of the same columns are computed together."""
        parts = self._parts

        def columns(t: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            begin = code.maximum(code.add(first, code.mul(t, -parts)), 0)
            end = code.minimum(code.add(last, code.mul(t, -parts)), parts)
            column, *groups = code.unflatten(t, [self._n_run.count, *self._groups])
            at = code.add(code.mul(column, self._n_run.tile), self._n_run.start)
            for emitter in (self._terms, self._rest):
                outer = [d for d in emitter.sched.outer if d not in self._how.across]
                emitter.env.update(zip(outer, groups, strict=True))
            low, high = code.mul(begin, self._each), code.minimum(code.mul(end, self._each), self._passes)
            if self._most == self._passes:
                self._some(low, code.add(high, code.mul(low, -1)), at)
                return []

            def some(start: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
                self._some(start, code.minimum(code.add(high, code.mul(start, -1)), self._most), at)
                return []

            code.loop(low, high, self._most, [], some)
            return []

        code.loop(code.quotient(first, parts), code.floordiv(code.add(last, parts - 1), parts), 1, [], columns)

    def _some(self, start: Index, count: Index, column: Index) -> None:
        """Emit the ``count`` passes from ``start`` on for the tile at ``column``: all blocks of the sums, then the
        stages after the sums.
        """
        code, nest, how, terms = self._code, self._nest, self._how, self._terms
        main = nest.reduction
        assert main is not None and main.inits[0] is not None
        terms.totals.clear(code, main.inits[0], main.writes[0].element, code.mul(count, self._rows_each))

        def block(iteration: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            extent = nest.dims[how.dim].extent
            high = code.add(iteration, how.iterations)
            terms.block = (
                how.dim,
                iteration,
                high if extent % how.iterations == 0 else code.minimum(high, extent),
                how.iterations,
            )
            self._over(terms, start, count, column)
            return []

        def blocks() -> None:
            code.loop(0, nest.dims[how.dim].extent, how.iterations, [], block)

        loops_around(code, nest, how.around, terms.env, blocks)
        self._over(self._rest, start, count, column)

    def _over(self, emitter: PassEmitter, start: Index, count: Index, column: Index) -> None:
        """Emit ``count`` passes over all rows with ``emitter``, beginning with pass ``start``."""
        code = self._code

        def one(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            at = code.unflatten(code.add(start, i), self._across) if self._across else []
            emitter.env.update(zip(self._how.across, at, strict=True))
            emitter.before = code.mul(i, self._rows_each)
            emitter.rows_for(self._m_runs, column, self._n_run)
            return []

        code.loop(0, count, 1, [], one)


class _PrefetchingTerms(TermsEmitter):
    """Prefetches the columns of the next block while it adds the terms of one."""

    def _to_next(self, r: ElementAccess, t: Tile, dim: int, low: Index, iterations: int) -> Index:
        """Returns the distance in memory, in elements, from a block of the columns ``r`` to the next one.

        After the last block of a loop comes the first block of the next iteration of the loop around it, or of the next
        columns.
        """
        code, step, extent = self.code, r.index.coeff(dim), self.nest.dims[dim].extent
        last = (extent - 1) // iterations * iterations
        # 1 or 0, computed without a division: in shared code the extent is a word
        is_last = code.minimum(code.maximum(code.add(low, 1 + iterations - extent), 0), 1)
        around = self.sched.inner[: self.sched.inner.index(dim)]
        next_iteration = r.index.coeff(around[-1]) if around else t.n_size * _column_step(r, self.sched)
        further = next_iteration - (last + iterations) * step
        return code.add(code.mul(is_last, further), iterations * step)

    def prefetching(self, t: Tile, dim: int, low: Index, iterations: int) -> Callable[[int], None]:
        """Returns a function that emits the prefetches of tile ``t``: its share of the columns of the next block."""
        code, sched, nest = self.code, self.sched, self.nest
        last = sched.inner[-1]
        extent = nest.dims[last].extent
        lines = min(extent, math.ceil(t.n_size * extent * t.m_size / self.totals.m_extent))
        before = code.mul(code.quotient(self.row_of(t, 0), t.m_size), lines) if t.m_size != self.totals.m_extent else 0
        places = [code.minimum(code.add(before, i), t.n_size * extent - 1) for i in range(lines)]
        wrapped = [(code.quotient(at, extent), code.remainder(at, extent)) for at in places]
        reads = [
            (r, [code.add(code.mul(n, _column_step(r, sched)), code.mul(i, r.index.coeff(last))) for n, i in wrapped])
            for r in columns_of(nest, sched)
        ]

        def emit(d: int) -> None:
            self.env[d] = 0
            for r, offsets in reads:
                base = code.add(self.operands.index(r.index, t, 0, 0), self._to_next(r, t, dim, low, iterations))
                for offset in offsets:
                    code.prefetch(self.operands.buffers[r.buffer], code.add(base, offset))
            del self.env[d]

        return emit


def _column_step(r: ElementAccess, sched: Schedule) -> int:
    """Returns the distance in memory, in elements, between neighbouring columns of ``r``."""
    assert sched.n_dim is not None
    return r.index.coeff(sched.n_dim) * (sched.lanes if sched.n_dim == sched.lane else 1)
