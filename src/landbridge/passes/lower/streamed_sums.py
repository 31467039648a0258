"""Tasks for sums of few rows whose columns come from beyond L2: all tiles compute one block of each sum, then the next.

A block of columns is small enough to stay in L1 from the first tile to the last. Memory is therefore read once, in
order (``streaming_tile.py``). The sums of short blocks are added up in longer blocks, and those to totals, so that no
chain of additions is longer than without blocks (``sum_blocks.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.combiners import fold, identity
from landbridge.passes.lower.cost import MEMORY_ORDER, SUM_ORDER
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.row_passes import columns_of
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule, VectorUnit
from landbridge.passes.lower.streaming_tile import streaming_tile
from landbridge.passes.lower.sum_scratch import RestEmitter, TermsEmitter, Totals
from landbridge.records import record
from landbridge.sizes.size import Extent, product


@record(frozen=True)
class Streaming:
    """How sums are streamed: in blocks of ``iterations`` of loop ``dim``, which are added up ``blocks`` at a time."""

    dim: int
    iterations: int
    blocks: int


def streaming(nest: Nest, sched: Schedule, machine: VectorUnit) -> Streaming | None:
    """Returns how the sums of ``nest`` are streamed; None if one tile has them all, or their columns stay in L2."""
    lane, m_dim, n_dim = sched.lane, sched.m_dim, sched.n_dim
    if lane is None or m_dim is None or n_dim != lane or sched.horizontal or not machine.prefetches:
        return None
    plain = sched.partial_sums == 1 and sched.iterations == 1 and sched.window is None
    if not plain or len(sched.n_runs) != 1 or sched.n_runs[0].count != 1 or any(run.mask for run in sched.n_runs):
        return None
    tile = sched.m_runs[0].tile, sched.n_runs[0].tile
    found = streaming_tile(nest, lane, sched.lanes, m_dim, sched.inner, tile, machine.registers, machine.l2_bytes)
    if found != tile:
        return None
    nbytes = sum(r.index.coeff(sched.inner[0]) * r.item_bytes for r in columns_of(nest, sched))
    iterations = max(1, machine.l1_bytes // MEMORY_ORDER.l1_parts_of_columns // nbytes)
    return Streaming(sched.inner[0], iterations, max(1, SUM_ORDER.block_terms // iterations))


class StreamedTasks:
    """The tasks of a nest whose sums are streamed: one for each iteration of the outer loops."""

    def __init__(
        self,
        code: Code,
        nest: Nest,
        sched: Schedule,
        how: Streaming,
        m_runs: Sequence[Run],
        buffers: dict[SSAValue, SSAValue],
    ) -> None:
        assert sched.m_dim is not None and nest.reduction is not None
        self._nest, self._sched, self._how, self._m_runs = nest, sched, how, m_runs
        self._n_run: Run = sched.n_runs[0]
        self._rows = nest.dims[sched.m_dim].extent
        self._element = nest.reduction.writes[0].element
        self._partial, self._totals = (self._memory(code) for _ in range(2))
        self._terms = TermsEmitter(code, nest, sched, buffers, self._partial)
        self._rest = RestEmitter(code, nest, sched, buffers, self._totals)
        self._extents = [nest.dims[d].extent for d in sched.outer]
        self.count: Extent = product(self._extents)

    def _memory(self, code: Code) -> Totals:
        shape = [self._rows * self._n_run.tile * self._sched.lanes]
        scratch = code.add_op(memref.AllocaOp.get(self._element, alignment=64, shape=shape))
        return Totals(self._n_run.tile, self._sched.lanes, scratch, self._rows)

    def emit(self, code: Code, first: Index, last: Index) -> None:
        """Emit tasks ``first .. last``."""

        def task(t: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            indices = code.unflatten(t, self._extents) if self._extents else []
            for emitter in (self._terms, self._rest):
                emitter.env.update(zip(self._sched.outer, indices, strict=True))
            self._sums(code)
            self._over_rows(self._rest)
            return []

        code.loop(first, last, 1, [], task)

    def _sums(self, code: Code) -> None:
        """Emit the sums of all rows and columns, into the totals."""
        how, main, extent = self._how, self._nest.reduction, self._nest.dims[self._how.dim].extent
        assert main is not None and main.inits[0] is not None
        length = how.iterations * how.blocks
        self._totals.clear(code, main.inits[0], self._element, self._rows)

        def part(low: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            self._partial.clear(code, identity("arith.addf", self._element), self._element, self._rows)

            def block(start: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
                stop = code.minimum(code.add(start, how.iterations), extent)
                self._terms.block = how.dim, start, stop, how.iterations
                self._over_rows(self._terms)
                return []

            code.loop(low, code.minimum(code.add(low, length), extent), how.iterations, [], block)
            self._add_partial(code)
            return []

        code.loop(0, extent, length, [], part)

    def _add_partial(self, code: Code) -> None:
        """Add the partial sums to the totals."""
        main, lanes = self._nest.reduction, self._sched.lanes
        assert main is not None

        def vector(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            at = code.mul(i, lanes)
            total, value = (
                code.load_vector(each.scratch, at, self._element, lanes, 0) for each in (self._totals, self._partial)
            )
            code.store_vector(fold(code, main, total, value), self._totals.scratch, at, lanes, 0)
            return []

        code.loop(0, self._rows * self._n_run.tile, 1, [], vector)

    def _over_rows(self, emitter: NestEmitter) -> None:
        emitter.rows_for(self._m_runs, self._n_run.start, self._n_run)
