"""Emits iterations of the innermost loop of a tile's reduction: their reads, and the accumulators of their terms."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TypeAlias

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from landbridge.errors import CodegenError
from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.combiners import fold
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.operands import Copy, Operands, Tile
from landbridge.passes.lower.peeling import Peeling
from landbridge.passes.lower.prefetched import prefetched, prefetched_into_l2, prefetched_rows, streamed_into_l2
from landbridge.passes.lower.row_windows import RowWindow, fold_row, row_window
from landbridge.passes.lower.schedule import Schedule
from landbridge.passes.lower.straight_line import LoadNumber
from landbridge.passes.lower.windows import (
    SharedWindow,
    has_contiguous_scalars,
    iterations_between,
    overlap_of_rows,
    stride_between,
)
from landbridge.targets.machine import LINE_BYTES

#: An accumulator: its row, column, number of the partial sum, and output.
Slot: TypeAlias = tuple[int, int, int, int]
Slots: TypeAlias = dict[Slot, SSAValue]


class ReductionIterations:
    """Emits iterations of the innermost loop for one tile, whose other loops are in the ``env`` of ``operands``.

    ``prefetches``: each iteration also emits the prefetches of the schedule. ``window``: a window that rows of the tile
    share. Its iterations are emitted together, and its loops are fully unrolled.
    """

    def __init__(
        self,
        code: Code,
        nest: Nest,
        sched: Schedule,
        peeling: Peeling,
        operands: Operands,
        tile: Tile,
        prefetches: bool,
    ) -> None:
        main = nest.reduction
        if main is None:
            raise CodegenError("a nest without a reduction has nothing to reduce")
        self.code, self.nest, self.sched, self.operands, self.main = code, nest, sched, operands, main
        self.peeling, self._tile = peeling, tile
        self._prefetched = prefetched(nest, sched) if sched.prefetches and prefetches else []
        self._next_rows = prefetched_rows(nest, sched) if prefetches else []
        self._into_l2 = prefetched_into_l2(nest, sched)
        self._streamed = streamed_into_l2(nest, sched) if prefetches else []
        plain = sched.partial_sums == 1 and sched.iterations == 1
        self._between = 1
        self._scalars = 0
        if sched.iterations > 1:
            self._scalars = sched.iterations if sched.window is None else sched.window.lanes
        self.window = row_window(nest, sched.lane, sched.m_dim, sched.inner) if plain else None

    def lane_step(self, d: int) -> int:
        """Returns the iterations of loop ``d`` that one emitted iteration covers, one per lane."""
        return self.operands.lanes if self.sched.horizontal and d == self.sched.lane else 1

    def emit(
        self,
        slots: Slots,
        iterations: int,
        inside: Callable[[int, int], bool] = lambda iteration, row: True,
        row_done: Callable[[int, Slots], None] | None = None,
    ) -> Slots:
        """Emit ``iterations`` iterations, whose terms go to the partial sums in turn; returns the new accumulators.

        Each iteration is emitted for the rows for which ``inside(iteration, row)`` is true. ``row_done`` is called with
        each row and the accumulators once those of the row are complete, where rows are read one after the other.
        """
        if self.window is not None:
            return self._window_iterations(self.window, slots)
        main = self.main
        self.operands.forget()
        result = dict(slots)
        last = self.sched.lane if self.sched.horizontal else self.sched.inner[-1] if self.sched.inner else None
        between = 1 if last is None else iterations_between(main, self.sched.lane, last)
        self._between = between if iterations % between == 0 else 1
        prefetched, row, by_row = 0, 0, self._reads_by_row() and iterations > 1
        order = self._in_order(slots, iterations, last)

        def is_emitted(iteration: int, slot: Slot) -> bool:
            m, _, u, o = slot
            return o == 0 and u == iteration % self.sched.partial_sums and inside(iteration, m)

        def copy(iteration: int, slot: Slot) -> Copy:
            shift = None if last is None or iterations == 1 else (last, iteration * self.lane_step(last))
            return slot[0], slot[1], shift

        if last is not None and iterations > 1 and (merged := self._merged(last)):
            copies = [copy(*each) for each in order if is_emitted(*each)]
            self.operands.merge(merged, self._tile, copies, self._scalars)
        for iteration, slot in order:
            m, n, u, _ = slot
            if by_row and m != row:
                if row_done is not None:
                    row_done(row, result)
                self.code.order_loads()
                row = m
            if by_row and n == 0:
                self._prefetch_into_l2(m, iteration)
            if iteration == prefetched:
                self._emit_prefetches(iteration)
                prefetched += 1
            if not is_emitted(iteration, slot):
                continue
            reads = [
                self.operands.read(r, self._tile, *copy(iteration, slot)) if isinstance(r, ElementAccess) else None
                for r in main.reads
            ]
            accumulators = [result[m, n, u, x] for x in range(len(main.writes))]
            inputs = [*reads, *accumulators]
            values = self.operands.body(main, inputs, self._tile, m, n)
            for x, v in enumerate(values):
                if self.sched.lane is not None and not isinstance(v.type, VectorType):
                    v = self.code.broadcast(v, self.operands.lanes)
                result[m, n, u, x] = v
        if by_row and row_done is not None:
            row_done(row, result)
        self.operands.forget()
        return result

    def _emit_prefetches(self, iteration: int) -> None:
        """Prefetch what is read a few iterations after ``iteration``, one of those that are unrolled."""
        for (a, early), n in product(self._prefetched, range(self._tile.n_size)):
            at = self.operands.where(a, self._tile, 0, n, (self.sched.inner[-1], early + iteration))
            self.code.prefetch(self.operands.buffers[a.buffer], at)
        for (a, early), n in product(self._streamed, range(self._tile.n_size)):
            at = self.operands.where(a, self._tile, 0, n, (self.sched.inner[-1], early + iteration))
            self.code.prefetch(self.operands.buffers[a.buffer], at, beyond_l1=True)
        for a, m in product(self._next_rows if iteration == 0 else (), range(self._tile.m_size)):
            at = self.operands.where(a, self._tile, self._tile.m_size + m, 0)
            self.code.prefetch(self.operands.buffers[a.buffer], at)

    def _prefetch_into_l2(self, m: int, iteration: int) -> None:
        """Prefetch what row ``m`` of a later tile reads in ``iteration``, once for each cache line."""
        lane = self.sched.lane
        assert lane is not None
        by = iteration * self.lane_step(lane)
        for a, distance in self._into_l2:
            if by * a.item_bytes % LINE_BYTES == 0:
                at = self.operands.where(a, self._tile, m, 0, (lane, by))
                assert not isinstance(at, tuple)
                self.code.prefetch(self.operands.buffers[a.buffer], self.code.add(at, distance), beyond_l1=True)

    def _reads_by_row(self) -> bool:
        """Returns whether each row of the tile reads its memory before the next row."""
        return self.sched.horizontal and self.sched.unrolled > 1

    def _in_order(self, slots: Slots, iterations: int, last: int | None) -> list[tuple[int, Slot]]:
        """Returns the pairs of iteration and accumulator in the order in which they are emitted: usually by iteration.

        Where lanes are summed, each row reads its memory before the next row.
        A window is emitted in the order of memory, so that a vector which several rows read need not stay in a register
        until their iterations come, unless the column vectors would then take more registers.
        """
        pairs = list(product(range(iterations), slots))
        if self._reads_by_row():
            return sorted(pairs, key=lambda pair: pair[1][0])
        if self._between > 1:  # iterations that share vectors are adjacent, as there are too many vectors to keep
            order = {slot: number for number, slot in enumerate(slots)}
            pairs.sort(key=lambda pair: (pair[0] // self._between, order[pair[1]]))
        window = self.overlap(iterations, last)
        if window is not None and window.in_memory_order(self._tile.m_size, self._tile.n_size):
            pairs.sort(key=lambda pair: pair[0] + pair[1][0] * window.stride)
        return pairs

    def overlap(self, iterations: int, last: int | None) -> SharedWindow | None:
        """Returns the window that rows share if the unrolled ``iterations`` are all of it; else None."""
        if (
            last is None
            or self.sched.lane is None
            or self.sched.partial_sums > 1
            or iterations != self.nest.dims[last].extent
        ):
            return None
        if self.sched.window is not None:
            return self.sched.window
        return overlap_of_rows(self.main, self.sched.lane, self.sched.m_dim, last, iterations)

    def _window_iterations(self, window: RowWindow, slots: Slots) -> Slots:
        """Emit the iterations of a window that rows of the tile share: what has one value number is folded once."""
        t, operands, result = self._tile, self.operands, dict(slots)
        is_peeled = t.has_pieces_of(window.dim)

        def fold_iteration(m: int, n: int, iteration: int) -> SSAValue:
            def read(at: dict[int, int]) -> SSAValue:
                operands.forget()  # the loads of other iterations
                operands.env.update({**at, window.dim: iteration})
                return operands.read(window.read, t, m, n)

            return fold_row(self.code, self.nest, window, operands.lanes, read)

        with operands.known.tested(self.peeling.guards_of(window.dim) if is_peeled else []):
            operands.forget()
            folded = dict[LoadNumber, SSAValue]()
            for n, (m, iteration) in product(range(t.n_size), window.in_memory_order(t.m_size)):
                if (m, n, 0, 0) not in slots or (is_peeled and not t.executes(m, window.dim, iteration)):
                    continue
                number = operands.number(window.read, t, (m, n, (window.dim, iteration)))
                if number not in folded:
                    folded[number] = fold_iteration(m, n, iteration)
                result[m, n, 0, 0] = fold(self.code, self.main, result[m, n, 0, 0], folded[number])
        for d in (window.dim, *window.written_out):
            operands.env.pop(d, None)
        operands.forget()
        return result

    def _merged(self, last: int) -> list[ElementAccess]:
        """Returns the reads whose loads in iterations of loop ``last`` may share vectors."""
        lane, reads = self.sched.lane, [r for r in self.main.reads if isinstance(r, ElementAccess)]
        strided = [r for r in reads if self._between > 1 and lane is not None and stride_between(r, lane, last) > 1]
        return strided + [r for r in reads if self._scalars and has_contiguous_scalars(r, lane, last)]
