"""Emits the reduction of a register tile: accumulators carried through loops, partial sums, sums over lanes.

Long sums are added up in blocks, which ``sum_blocks`` chooses. If there are or may be many blocks, their sums are added
up in blocks as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from types import MappingProxyType

from xdsl.dialects import vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType
from xdsl.ir import Attribute, SSAValue

from landbridge.errors import CodegenError
from landbridge.passes.lower.access import ElementAccess, Guard
from landbridge.passes.lower.code import Code, Index, vector_type
from landbridge.passes.lower.combiners import combiner, fold, identity
from landbridge.passes.lower.cost import BLOCK_TOTALS
from landbridge.passes.lower.guards import bound_guard
from landbridge.passes.lower.lane_folds import LaneFolds, vector_lanes
from landbridge.passes.lower.merged_iterations import walks_as_one
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.operands import Operands, Tile
from landbridge.passes.lower.peeling import PeeledIterations, Peeling, Piece
from landbridge.passes.lower.reduction_iterations import ReductionIterations, Slots
from landbridge.passes.lower.schedule import Schedule
from landbridge.passes.lower.sum_blocks import block_of_sums, longest_block, may_pass
from landbridge.passes.lower.transposed import shuffled
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, same


@record(frozen=True)
class SumBlock:
    """A block of every sum: iterations ``low`` to ``high`` of reduction loop ``dim``, for one iteration of each loop
    around it.

    ``prefetch`` is called with the innermost loop, before it begins.
    """

    dim: int
    low: Index
    high: Index
    prefetch: Callable[[int], None]


class Reduction:
    """Emits the reduction stage of a nest for one tile.

    ``lows``: the first iterations of reduction loops, if not 0. ``block``: reduce only the terms of this block of each
    sum.
    """

    def __init__(
        self,
        code: Code,
        nest: Nest,
        sched: Schedule,
        peeling: Peeling,
        operands: Operands,
        tile: Tile,
        lows: Mapping[int, Extent] = MappingProxyType({}),
        block: SumBlock | None = None,
    ) -> None:
        self._innermost = ReductionIterations(code, nest, sched, peeling, operands, tile, prefetches=block is None)
        self.code, self.nest, self.sched, self.operands, self.main = code, nest, sched, operands, self._innermost.main
        self.peeling, self.env, self._lanes = peeling, operands.env, operands.lanes
        self._tile, self._lows, self._block = tile, lows, block
        self._has_prefetched = False  # whether the columns of the loops being emitted are prefetched already
        self._known = operands.known
        self._row_folds: LaneFolds | None = None
        if sched.horizontal and self._emits_sums_at_once():
            self._row_folds = self._lane_folds()

    def emit(self) -> Slots:
        """Returns the reduced values of every row and column of the tile."""
        slots = self._sums()
        return self._across_lanes(slots) if self.sched.horizontal else slots

    def emit_along_rows(self) -> Slots:
        """Returns for every column a vector of the reduced values of all rows, whose number is a power of two and
        divides the lanes; for sums over lanes that leave no iterations over.
        """
        sums, rows, lanes = self._folded(self._sums()), self._tile.m_size, self._lanes
        slots: Slots = {}
        for n in range(self._tile.n_size):
            folded, first = sums[n * rows // lanes], n * rows % lanes
            if vector_lanes(folded) > rows:
                folded = shuffled(self.code, folded, folded, range(first, first + rows))
            slots[0, n, 0, 0] = self._from_initial(folded, rows)
        return slots

    def _sums(self) -> Slots:
        """Returns the accumulators of every row and column, before their lanes are combined."""
        window = self._innermost.window
        written_out = () if window is None else (window.dim, *window.written_out)
        inner = self.sched.inner if self._block is None else self.sched.inner[self.sched.inner.index(self._block.dim) :]
        slots = self._loops([d for d in inner if d not in written_out], self._start())
        return self._merge_partial_sums(slots) if self.sched.partial_sums > 1 else slots

    def _start(self) -> Slots:
        main, sched, t = self.main, self.sched, self._tile
        combine = combiner(main)
        slots: Slots = {}
        for m, n, u in product(range(t.m_size), range(t.n_size), range(sched.partial_sums)):
            for o, w in enumerate(main.writes):
                attr = main.inits[o]
                if attr is None:
                    raise CodegenError("a reduction without linalg.fill before it")
                if self._row_folds is not None and combine == "arith.addf":
                    slots[m, n, u, o] = self._no_terms(w.element)
                    continue
                if sched.horizontal or u or self._block is not None:
                    assert combine is not None
                    attr = identity(combine, w.element)
                slots[m, n, u, o] = self._splat(attr, w.element)
        return slots

    def _splat(self, attr: Attribute, element: Attribute) -> SSAValue:
        if self.sched.lane is None:
            return self.code.constant(attr, element)
        return self.code.splat(attr, element, self._lanes)

    def _no_terms(self, element: Attribute) -> SSAValue:
        """Returns a vector of -0.0, which changes no float that is added to it: LLVM then leaves out the addition."""
        ty = vector_type(element, self._lanes)
        return self.code.constant(DenseIntOrFPElementsAttr.from_list(ty, [-0.0]), ty)

    def _merge_partial_sums(self, slots: Slots) -> Slots:
        merged: Slots = {}
        for m, n in product(range(self._tile.m_size), range(self._tile.n_size)):
            parts = [slots[m, n, u, 0] for u in range(self.sched.partial_sums)]
            while len(parts) > 1:
                parts = [fold(self.code, self.main, a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
            merged[m, n, 0, 0] = parts[0]
        return merged

    def _folded(self, slots: Slots) -> list[SSAValue]:
        """Returns the sums of all lanes, column by column, in vectors as ``LaneFolds`` returns them."""
        if self._row_folds is not None:
            return self._row_folds.results()
        folds = self._lane_folds()
        for m in range(self._tile.m_size):
            self._fold_row(folds, m, slots)
        return folds.results()

    def _lane_folds(self) -> LaneFolds:
        sums = self._tile.m_size * self._tile.n_size
        return LaneFolds(self.code, sums, self._lanes, partial(fold, self.code, self.main))

    def _fold_row(self, folds: LaneFolds, m: int, slots: Slots) -> None:
        for n in range(self._tile.n_size):
            folds.put(n * self._tile.m_size + m, slots[m, n, 0, 0])

    def _emits_sums_at_once(self) -> bool:
        """Returns whether the rows of the tile are read one after the other, each with its whole sums."""
        sched, lane = self.sched, self.sched.lane
        if lane is None or sched.inner != (lane,) or sched.partial_sums > 1 or sched.unrolled == 1:
            return False
        if self._block is not None or self._lows or self.nest.dims[lane].extent != sched.unrolled * self._lanes:
            return False
        return block_of_sums(self.nest, sched, self.peeling, self._lows)[0] is None

    def _from_initial(self, value: SSAValue, lanes: int) -> SSAValue:
        """Returns ``value`` combined with the value with which the sum begins, unless that is neutral; a vector unless
        ``lanes`` is 0.
        """
        code, attr, element, combine = self.code, self.main.inits[0], self.main.writes[0].element, combiner(self.main)
        assert attr is not None and combine is not None
        if attr == identity(combine, element):
            return value
        return fold(code, self.main, code.splat(attr, element, lanes) if lanes else code.constant(attr, element), value)

    def _across_lanes(self, slots: Slots) -> Slots:
        """Combine the lanes with each other and the initial value, and add the iterations that fill no vector."""
        lane, element = self.sched.lane, self.main.writes[0].element
        assert lane is not None
        folded, sums = self._folded(slots), dict(slots)
        for place, key in enumerate(sorted(slots, key=lambda key: (key[1], key[0]))):
            value = folded[place // self._lanes]
            if isinstance(value.type, VectorType):
                value = self.code.add_op(vector.ExtractOp(value, [place % self._lanes], element))
            sums[key] = self._from_initial(value, 0)
        extent = self.nest.dims[lane].extent
        if extent % self._lanes == 0:
            return sums
        scalar = replace(self.sched, lane=None, horizontal=False, partial_sums=1, unrolled=1)
        operands = Operands(self.code, scalar, self.operands.buffers, self.env, self._known)
        lows = {lane: extent - extent % self._lanes}
        tail = Reduction(self.code, self.nest, scalar, self.peeling, operands, self._tile, lows)
        return tail._loops(list(self.sched.inner), sums)

    def _loops(self, dims: list[int], slots: Slots) -> Slots:
        """Emit the reduction loops ``dims`` around the body, carrying ``slots``."""
        if not dims:
            return self._innermost.emit(slots, 1)
        d, rest = dims[0], dims[1:]
        if self.sched.horizontal and d == self.sched.lane and rest:
            return self._loops([*rest, d], slots)
        if self._tile.has_pieces_of(d):
            with self._known.tested(self.peeling.guards_of(d)):
                return self._pieces(d, rest, slots)
        if self._tile.peeled is not None and self._tile.peeled.dim == d:
            with self._known.tested(self.peeling.guards_of(d)):
                return self._peeled(self._tile.peeled, rest, slots)
        low, high, clipped = self._clip(d, *self._range(d))
        with self._known.tested(clipped):
            return self._runs(d, rest, slots, low, high)

    def _pieces(self, d: int, rest: list[int], slots: Slots) -> Slots:
        """Emit loop ``d`` of a peeled tile fully unrolled: each iteration only for the rows that read no padding."""
        t = self._tile

        def inside(iteration: int, m: int) -> bool:
            return t.executes(m, d, iteration)

        if not rest and self._innermost.overlap(self.sched.iterations, d) is not None:
            self.env[d] = 0
            slots = self._innermost.emit(slots, self.sched.iterations, inside)
            del self.env[d]
            return slots
        for i in range(self._lows.get(d, 0), self.nest.dims[d].extent):
            self.env[d] = i
            active = {m for m in range(t.m_size) if inside(i, m)}
            part = {k: v for k, v in slots.items() if k[0] in active}
            if part:
                slots = {**slots, **self._loops(rest, part)}
        self.env.pop(d, None)
        return slots

    def _peeled(self, peeled: PeeledIterations, rest: list[int], slots: Slots) -> Slots:
        """Emit the loop in which rows of the first and the last tile leave out iterations.

        These are the iterations before ``low`` and from ``high`` on; in all other tiles these are the bounds of the
        loop.
        """
        code, d, extent, row = self.code, peeled.dim, self.nest.dims[peeled.dim].extent, self._tile.m_start
        low, high = peeled.bounds(code, extent, row)

        def at_edge(slots: Slots, parts: Sequence[Piece], first: Index, end: Index) -> Slots:
            for part in parts:
                if owned := {k: v for k, v in slots.items() if k[0] in part.rows}:
                    start, stop = code.maximum(first, part.low), code.minimum(end, part.high)
                    slots = {**slots, **self._loop(d, rest, owned, start, stop, 1)}
            return slots

        blocked, _ = block_of_sums(self.nest, self.sched, self.peeling, self._lows)
        as_one = len(rest) == 1 and self.sched.partial_sums == 1 and blocked not in (d, rest[0])
        as_one = as_one and walks_as_one(self.nest, d, rest[0])
        if as_one and self._block is not None:
            for i in range(extent):  # prefetch for all iterations, also those that the tile leaves out
                self.env[d] = i
                self._block.prefetch(rest[0])
            self._has_prefetched = True
        slots = at_edge(slots, peeled.first, 0, low)
        if as_one:
            self.env[d], within = 0, self.nest.dims[rest[0]].extent
            step = self.sched.unrolled if within % self.sched.unrolled == 0 else 1
            slots = self._loop(rest[0], [], slots, code.mul(low, within), code.mul(high, within), step)
            del self.env[d]
        else:
            slots = self._loop(d, rest, slots, low, high, 1)
        slots = at_edge(slots, peeled.last, high, extent)
        self._has_prefetched = False
        return slots

    def _runs(self, d: int, rest: list[int], slots: Slots, low: Index, high: Index) -> Slots:
        """Emit loop ``d`` from ``low`` to ``high``: vectors and partial sums as far as possible, then the iterations
        left.
        """
        if rest and self._has_short_tile(d, low, high):
            assert isinstance(low, int) and isinstance(high, int)
            with self._known.within(d, low, high - 2):
                slots = self._sum(d, rest, slots, low, high - 1, 1)
            return self._loop(d, rest, slots, high - 1, high, 1)
        lane_step = self._innermost.lane_step(d)
        step = lane_step * (1 if rest else self._iterations_at_once(d))
        if rest or step == 1 or isinstance(high, SSAValue) or isinstance(low, SSAValue):
            return self._sum(d, rest, slots, low, high, lane_step)
        main_high = low + (high - low) // step * step
        if same(low, main_high) is not True:
            slots = self._sum(d, rest, slots, low, main_high, step)
        whole_high = low + (high - low) // lane_step * lane_step
        if step > lane_step and same(main_high, whole_high) is not True:
            first = {k: v for k, v in slots.items() if k[2] == 0}
            slots = {**slots, **self._loop(d, rest, first, main_high, whole_high, lane_step)}
        return slots

    def _has_short_tile(self, d: int, low: Index, high: Index) -> bool:
        """Returns whether the last iteration of ``d`` is a partial tile of the innermost loop, which all other
        iterations unroll.

        It is then emitted separately.
        """
        if self.sched.iterations == 1 or self._block is not None:
            return False
        if not isinstance(low, int) or not isinstance(high, int) or high - low < 2:
            return False
        last, extent = self.sched.inner[-1], self.nest.dims[d].extent
        return high == extent and any(b.outer == d and b.inner == last and b.extent % b.tile for b in self.nest.bounds)

    def _iterations_at_once(self, d: int) -> int:
        """Returns how many iterations of the innermost loop are unrolled, whose terms go to the partial sums in turn.

        If reads are tested for padding, there are only as many as partial sums.
        """
        guards = (g for r in self.main.reads if isinstance(r, ElementAccess) for g in r.guards)
        tested = any(g.index.uses(d) for g in guards if not self._known.holds(g))
        sched = self.sched
        return sched.partial_sums if tested else max(sched.partial_sums, sched.iterations, sched.unrolled)

    def _sum(self, d: int, rest: list[int], slots: Slots, low: Index, high: Index, step: int) -> Slots:
        """Emit loop ``d``, block by block if it is the loop that ``sum_blocks`` has chosen."""
        blocked, iterations = block_of_sums(self.nest, self.sched, self.peeling, self._lows)
        if d != blocked or self._block is not None:
            return self._loop(d, rest, slots, low, high, step)
        # terms of a step for each accumulator
        terms = max(1, step // (self._innermost.lane_step(d) * self.sched.partial_sums))
        code, length, element = self.code, -(-iterations // terms) * step, self.main.writes[0].element
        zeros = dict.fromkeys(slots, self._splat(identity("arith.addf", element), element))
        extent = self.nest.dims[d].extent
        _, part = longest_block(self.main, self.sched.inner)
        lengths = [part * length, length] if may_pass(extent, part * part) else [length]

        def blocks(totals: Slots, low: Index, high: Index, lengths: Sequence[int]) -> Slots:
            if not lengths:
                return self._loop(d, rest, totals, low, high, step)

            def block(start: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
                sums = blocks(zeros, start, code.minimum(code.add(start, lengths[0]), high), lengths[1:])
                return [fold(code, self.main, a, b) for a, b in zip(carried, sums.values(), strict=True)]

            return dict(zip(totals, code.loop(low, high, lengths[0], list(totals.values()), block), strict=True))

        outermost = not any(other in self.env for other in self.sched.inner)
        zero = self.main.inits[0] == identity("arith.addf", element)  # only then does the change of order change no sum
        waits = zero and not rest and len(lengths) == 1 and len(slots) > BLOCK_TOTALS.in_registers
        if outermost and (waits or isinstance(extent, Size)):
            first = code.add(low, length)
            slots = self._loop(d, rest, slots, low, code.minimum(first, high), step)
            low = first
        return blocks(slots, low, high, lengths)

    def _loop(self, d: int, rest: list[int], slots: Slots, low: Index, high: Index, step: int) -> Slots:
        def iteration(i: Index, carried: Slots) -> Slots:
            self.env[d] = i
            if rest:
                return self._loops(rest, carried)
            row_done = None if self._row_folds is None else partial(self._fold_row, self._row_folds)
            return self._innermost.emit(carried, step // self._innermost.lane_step(d), row_done=row_done)

        def body(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            result = iteration(i, dict(zip(slots, carried, strict=True)))
            return [result[k] for k in slots]

        if isinstance(low, int) and isinstance(high, int) and low + step == high:
            only = iteration(low, slots)
            del self.env[d]
            return only

        if self._block is not None and not rest and not self._has_prefetched:
            self._block.prefetch(d)
        results = self.code.loop(low, high, step, list(slots.values()), body)
        del self.env[d]
        return dict(zip(slots, results, strict=True))

    def _range(self, d: int) -> tuple[Index, Index]:
        """Returns the bounds of reduction loop ``d``; a padded tile ends where its data does."""
        if self._block is not None and d == self._block.dim:
            return self._block.low, self._block.high
        code = self.code
        high: Index = self.nest.dims[d].extent
        for b in self.nest.bounds:
            if b.inner == d and not self._known.holds(bound_guard(b)):
                outer = self.env.get(b.outer)
                if outer is not None:
                    left = code.add(b.extent, code.mul(outer, -b.tile))
                    high = code.minimum(high, left)
        return self._lows.get(d, 0), high

    def _clip(self, d: int, low: Index, high: Index) -> tuple[Index, Index, list[Guard]]:
        """Returns the bounds of reduction loop ``d`` without its padded iterations, and the guards that hold
        between them.
        """
        clipped: list[Guard] = []
        if not self.peeling.skips:
            return low, high, clipped
        code = self.code
        for g in (g for r in self.main.reads if isinstance(r, ElementAccess) for g in r.guards):
            c, others = g.index.coeff(d), [x for x in g.index.coeffs if x != d]
            if c <= 0 or g.index.rest or self._known.holds(g) or g in clipped or any(x not in self.env for x in others):
                continue
            base: Index = g.index.const
            for x in others:
                base = code.add(base, code.mul(self.env[x], g.index.coeff(x)))
            # low is the first i with base + c*i >= 0, high the first i with base + c*i >= extent
            low = code.maximum(low, code.floordiv(code.add(code.mul(base, -1), c - 1), c))
            last = code.add(code.mul(base, -1), g.extent - 1 + c)
            high = code.minimum(high, code.floordiv(last, c))
            clipped.append(g)
        return low, high, clipped
