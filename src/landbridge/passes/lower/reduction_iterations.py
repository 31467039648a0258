"""Emits iterations of the innermost loop of a tile's reduction: their reads, and the accumulators of their terms."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TypeAlias

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from landbridge.errors import CodegenError
from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.between_lanes import iterations_between
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.combiners import fold
from landbridge.passes.lower.grouped_iterations import is_shared, window_of
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.operands import Operands, Tile
from landbridge.passes.lower.peeling import Peeling
from landbridge.passes.lower.prefetched import prefetched, prefetched_into_l2, prefetched_rows, streamed_into_l2
from landbridge.passes.lower.row_windows import RowWindow, fold_row, row_window
from landbridge.passes.lower.schedule import Schedule
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
        self._shares_scalars = sched.iterations > 1 and sched.vectors is None
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
        scalars = None
        if self.sched.scalars is not None and iterations > 1:
            taken = {(m, iteration) for iteration, (m, *_) in product(range(iterations), slots) if inside(iteration, m)}
            scalars = self.sched.scalars.places(taken) if taken else None
        last = self.sched.lane if self.sched.horizontal else self.sched.inner[-1] if self.sched.inner else None
        between = 1 if last is None else iterations_between(main, self.sched.lane, last)
        self._between = between if iterations % between == 0 else 1
        prefetched, row, by_row = 0, 0, self._reads_by_row() and iterations > 1
        for iteration, (m, n, u, o) in self._in_order(slots, iterations, last):
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
            if o or u != iteration % self.sched.partial_sums or not inside(iteration, m):
                continue
            shift = (last, iteration * self.lane_step(last)) if last is not None and iterations > 1 else None
            reads = [self._read(r, m, n, shift, scalars) if isinstance(r, ElementAccess) else None for r in main.reads]
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
        scalars = self.sched.scalars
        if scalars is not None and not scalars.by_location(self._tile.m_size, self._tile.n_size):
            return pairs
        if (overlap := self.overlap(iterations, last)) is not None:
            step, stride = overlap
            pairs.sort(key=lambda pair: pair[0] * step + pair[1][0] * stride)
        return pairs

    def overlap(self, iterations: int, last: int | None) -> tuple[int, int] | None:
        """Returns the steps in memory of an iteration and of a row, if the unrolled ``iterations`` are a whole window;
        else None.
        """
        if (
            last is None
            or self.sched.lane is None
            or self.sched.partial_sums > 1
            or iterations != self.nest.dims[last].extent
        ):
            return None
        shared = self.sched.vectors or self.sched.scalars
        if shared is not None:
            return 1, shared.stride
        return window_of(self.main, self.sched.lane, self.sched.m_dim, last, iterations)

    def _window_iterations(self, window: RowWindow, slots: Slots) -> Slots:
        """Emit the iterations of a window that rows of the tile share: each row that is read is folded once."""
        t, operands, result = self._tile, self.operands, dict(slots)
        is_peeled = t.has_pieces_of(window.dim)
        for n, users in product(range(t.n_size), window.places(t.m_size)):
            taken = [
                (m, i) for m, i in users if (m, n, 0, 0) in slots and (not is_peeled or t.executes(m, window.dim, i))
            ]
            if not taken:
                continue
            first, iteration = taken[0]

            def read(at: dict[int, int]) -> SSAValue:
                operands.forget()  # the loads of other iterations
                self.operands.env.update({**at, window.dim: iteration})  # noqa: B023
                return operands.read(window.read, t, first, n)  # noqa: B023

            with operands.known.tested(self.peeling.guards_of(window.dim) if is_peeled else []):
                row = fold_row(self.code, self.nest, window, self.operands.lanes, read)
            for m, _ in taken:
                result[m, n, 0, 0] = fold(self.code, self.main, result[m, n, 0, 0], row)
        for d in (window.dim, *window.written_out):
            self.operands.env.pop(d, None)
        operands.forget()
        return result

    def _read(self, a: ElementAccess, m: int, n: int, shift: tuple[int, int] | None, scalars: range | None) -> SSAValue:
        if shift is not None and self._shares_scalars and is_shared(a, self.sched.lane, shift[0]):
            if scalars is not None:
                return self.operands.read_number(a, self._tile, m, n, shift, scalars)
            return self.operands.read_lane(a, self._tile, m, n, shift, self.sched.iterations)
        return self.operands.read(a, self._tile, m, n, shift, between=self._between)
