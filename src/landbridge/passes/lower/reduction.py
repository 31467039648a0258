"""The reduction of a register tile: accumulators carried through loops, partial sums, sums across lanes.

A long sum is added up in blocks: the error of one chain of additions grows with its length, that of a sum of short
chains hardly does (Higham, "The accuracy of floating point summation", 1993). The order of the additions follows from
the nest and its schedule alone, never from the tile, so that equal terms give equal sums everywhere in the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import VectorType
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Attribute, SSAValue

from landbridge.errors import CodegenError
from landbridge.passes.lower.access import Access, Guard
from landbridge.passes.lower.body import emit_body
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.nest import Nest, Stage
from landbridge.passes.lower.operands import Operands, Tile
from landbridge.passes.lower.padding import Padding, identity
from landbridge.passes.lower.schedule import Schedule, combiner

#: Terms that are added to one accumulator before it is added to the total.
BLOCK = 256

#: Row, column and partial-sum copy of an accumulator, and the output it belongs to.
Slot: TypeAlias = tuple[int, int, int, int]
Slots: TypeAlias = dict[Slot, SSAValue]

#: Lanes are summed as a tree.
_TREE = arith.FastMathFlagsAttr([FastMathFlag.REASSOC, FastMathFlag.NO_SIGNED_ZEROS, FastMathFlag.ALLOW_CONTRACT])
_COMBINING = {
    "arith.addf": CombiningKindFlag.ADD,
    "arith.addi": CombiningKindFlag.ADD,
    "arith.mulf": CombiningKindFlag.MUL,
    "arith.muli": CombiningKindFlag.MUL,
    "arith.maximumf": CombiningKindFlag.MAXIMUMF,
    "arith.minimumf": CombiningKindFlag.MINIMUMF,
    "arith.maxsi": CombiningKindFlag.MAXSI,
    "arith.minsi": CombiningKindFlag.MINSI,
    "arith.maxui": CombiningKindFlag.MAXUI,
    "arith.minui": CombiningKindFlag.MINUI,
    "arith.andi": CombiningKindFlag.AND,
    "arith.ori": CombiningKindFlag.OR,
}


def fold(code: Code, main: Stage, a: SSAValue, b: SSAValue) -> SSAValue:
    """Two accumulators of ``main``, which has a combiner, as one."""
    op = next(iter(main.body.args[len(main.reads)].uses)).operation
    return code.add_op(type(op).create(operands=[a, b], result_types=[a.type], properties=dict(op.properties)))


def sums_up(main: Stage) -> bool:
    """Whether ``main`` is one sum of floats: what long chains of additions make inexact."""
    return combiner(main) == "arith.addf" and len(main.writes) == 1


class Reduction:
    """Emits the reduction stage of a nest for one tile.

    A guard of a padded read is settled when what was emitted around the read keeps it true: the choice of the tile's
    rows, or the bounds of a loop. Whoever emits such code says so, in ``_settled``; all other guards are tested where
    they are read.
    """

    def __init__(self, code: Code, nest: Nest, sched: Schedule, padding: Padding, operands: Operands) -> None:
        main = nest.reduction
        if main is None:
            raise CodegenError("a nest without a reduction has nothing to reduce")
        self.code, self.nest, self.sched, self.operands, self.main = code, nest, sched, operands, main
        self.padding, self.env, self._lanes = padding, operands.env, operands.lanes
        self._settled: list[Guard] = []

    def emit(self, t: Tile) -> Slots:
        """The reduced values of every row and column of ``t``."""
        main = self.main
        sched = self.sched
        horizontal, copies = sched.horizontal, sched.copies
        self._settled = self.padding.settled_by_tile(t.edge)
        combine = combiner(main)
        slots: Slots = {}
        for m in range(t.rows):
            for n in range(t.columns):
                for u in range(copies):
                    for o, w in enumerate(main.writes):
                        attr = main.inits[o]
                        if attr is None:
                            raise CodegenError("a reduction without linalg.fill before it")
                        if horizontal or u:
                            assert combine is not None
                            attr = identity(combine, w.element)
                        slots[(m, n, u, o)] = self._splat(attr, w.element)
        slots = self._loops(main, t, list(sched.inner), slots, copies)
        if copies > 1:
            assert combine is not None
            slots = self._merge_copies(main, slots, t, copies)
        if horizontal:
            slots = self._across_lanes(main, t, slots)
        return slots

    def _splat(self, attr: Attribute, element: Attribute) -> SSAValue:
        if self.sched.lane is None:
            return self.code.constant(attr, element)
        return self.code.splat(attr, element, self._lanes)

    def _lane_step(self, d: int) -> int:
        return self._lanes if self.sched.horizontal and d == self.sched.lane else 1

    def _merge_copies(self, main: Stage, slots: Slots, t: Tile, copies: int) -> Slots:
        merged: Slots = {}
        for m in range(t.rows):
            for n in range(t.columns):
                parts = [slots[(m, n, u, 0)] for u in range(copies)]
                while len(parts) > 1:
                    parts = [fold(self.code, main, a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
                merged[(m, n, 0, 0)] = parts[0]
        return merged

    def _across_lanes(self, main: Stage, t: Tile, slots: Slots) -> Slots:
        """Sum the lanes, fold in the start value, and finish the iterations that fill no vector."""
        combine = combiner(main)
        lane = self.sched.lane
        assert combine is not None and lane is not None and main.inits[0] is not None
        element = main.writes[0].element
        start = self.code.constant(main.inits[0], element)
        sums: Slots = {}
        for key, value in slots.items():
            kind = CombiningKindAttr(_COMBINING[combine])
            properties = {"kind": kind, "fastmath": _TREE}
            total = self.code.emit(vector.ReductionOp, [value], element, **properties)
            sums[key] = fold(self.code, main, start, total)
        extent = self.nest.dims[lane].extent
        if extent % self._lanes == 0:
            return sums
        scalar = replace(self.sched, lane=None, horizontal=False)
        operands = Operands(self.code, scalar, self.operands.buffers, self.env)
        tail = Reduction(self.code, self.nest, scalar, self.padding, operands)
        tail._settled = self.padding.settled_by_tile(t.edge)
        return tail._loops(main, t, list(self.sched.inner), sums, 1, {lane: extent - extent % self._lanes})

    def _loops(
        self,
        main: Stage,
        t: Tile,
        dims: list[int],
        slots: Slots,
        copies: int,
        lows: Mapping[int, int] | None = None,
    ) -> Slots:
        """The reduction loops ``dims`` around the body, carrying ``slots``."""
        if not dims:
            return self._step(main, t, slots, copies)
        d, rest = dims[0], dims[1:]
        if self.sched.horizontal and d == self.sched.lane and rest:
            return self._loops(main, t, [*rest, d], slots, copies, lows)
        before = self._settled
        if t.edge and self.padding.at_edges(d):
            self._settled = [*before, *self.padding.settled_by_turn(d)]
            slots = self._turns(main, t, d, rest, slots, copies, lows)
        else:
            low, high, clipped = self._clip(d, *self._range(d, lows or {}))
            self._settled = [*before, *clipped]
            slots = self._runs(main, t, d, rest, slots, copies, lows, low, high)
        self._settled = before
        return slots

    def _turns(
        self,
        main: Stage,
        t: Tile,
        d: int,
        rest: list[int],
        slots: Slots,
        copies: int,
        lows: Mapping[int, int] | None,
    ) -> Slots:
        """Loop ``d`` of an edge tile, written out: each turn for the rows that read inside."""
        assert isinstance(t.row, int)
        for i in range((lows or {}).get(d, 0), self.nest.dims[d].extent):
            self.env[d] = i
            active = {m for m in range(t.rows) if self.padding.row_inside(t.row + m, d, i)}
            part = {k: v for k, v in slots.items() if k[0] in active}
            if part:
                slots = {**slots, **self._loops(main, t, rest, part, copies, lows)}
        self.env.pop(d, None)
        return slots

    def _runs(
        self,
        main: Stage,
        t: Tile,
        d: int,
        rest: list[int],
        slots: Slots,
        copies: int,
        lows: Mapping[int, int] | None,
        low: Index,
        high: Index,
    ) -> Slots:
        """Loop ``d`` from ``low`` to ``high``: by lanes and partial sums as far as these go, then what is left."""
        lane_step = self._lane_step(d)
        step = lane_step * (copies if not rest else 1)
        keys = list(slots)
        if not rest and (copies > 1 or lane_step > 1) and isinstance(high, int):
            assert isinstance(low, int) and isinstance(high, int)
            main_high = low + (high - low) // step * step
            values = self._sum(main, t, d, rest, low, main_high, step, keys, list(slots.values()), copies, lows)
            slots = dict(zip(keys, values, strict=True))
            whole_high = low + (high - low) // lane_step * lane_step
            if copies > 1 and main_high < whole_high:
                first = [k for k in keys if k[2] == 0]
                start = [slots[k] for k in first]
                values = self._loop(main, t, d, rest, main_high, whole_high, lane_step, first, start, 1, lows)
                slots.update(zip(first, values, strict=True))
            return slots
        values = self._sum(main, t, d, rest, low, high, step, keys, list(slots.values()), copies, lows)
        return dict(zip(keys, values, strict=True))

    def _sum(
        self,
        main: Stage,
        t: Tile,
        d: int,
        rest: list[int],
        low: Index,
        high: Index,
        step: int,
        keys: list[Slot],
        values: list[SSAValue],
        copies: int,
        lows: Mapping[int, int] | None,
    ) -> list[SSAValue]:
        """Loop ``d``, block by block where it is the loop whose blocks are summed on their own."""
        blocked, turns = self._block(copies, lows or {})
        if d != blocked:
            return self._loop(main, t, d, rest, low, high, step, keys, values, copies, lows)
        code, length = self.code, turns * step
        zeros = [self._splat(identity("arith.addf", main.writes[0].element), main.writes[0].element)] * len(keys)

        def block(start: SSAValue, totals: list[SSAValue]) -> list[SSAValue]:
            stop = code.minimum(code.add(start, length), high)
            sums = self._loop(main, t, d, rest, start, stop, step, keys, zeros, copies, lows)
            return [fold(self.code, main, a, b) for a, b in zip(totals, sums, strict=True)]

        return code.loop(low, high, length, values, block)

    def _block(self, copies: int, lows: Mapping[int, int]) -> tuple[int | None, int]:
        """The loop whose blocks are summed on their own, if the sums are long, and the turns of a block."""
        if not sums_up(self.main):
            return None, 0
        lane = self.sched.lane if self.sched.horizontal else None
        dims = [*(d for d in self.sched.inner if d != lane), *(d for d in self.sched.inner if d == lane)]
        turns = {d: self.nest.dims[d].extent - lows.get(d, 0) for d in dims}
        if dims:
            turns[dims[-1]] //= self._lane_step(dims[-1]) * copies
        below = 1
        for d in reversed(dims):
            if not self.padding.at_edges(d) and below * turns[d] > BLOCK and math.prod(turns.values()) > 2 * BLOCK:
                return d, max(1, BLOCK // below)
            below *= turns[d]
        return None, 0

    def _loop(
        self,
        main: Stage,
        t: Tile,
        d: int,
        rest: list[int],
        low: Index,
        high: Index,
        step: int,
        keys: list[Slot],
        values: list[SSAValue],
        copies: int,
        lows: Mapping[int, int] | None,
    ) -> list[SSAValue]:
        def body(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            self.env[d] = i
            result = self._loops(main, t, rest, dict(zip(keys, carried, strict=True)), copies, lows)
            return [result[k] for k in keys]

        results = self.code.loop(low, high, step, values, body)
        del self.env[d]
        return results

    def _range(self, d: int, lows: Mapping[int, int]) -> tuple[Index, Index]:
        """The bounds of reduction loop ``d``; a padded tile ends where its data does."""
        code = self.code
        high: Index = self.nest.dims[d].extent
        for b in self.nest.bounds:
            if b.inner == d and b.extent % b.tile:
                outer = self.env.get(b.outer)
                if outer is not None:
                    left = code.add(b.extent, code.mul(outer, -b.tile))
                    high = code.minimum(high, left)
        return lows.get(d, 0), high

    def _clip(self, d: int, low: Index, high: Index) -> tuple[Index, Index, list[Guard]]:
        """The bounds of reduction loop ``d`` without its padded turns, and the guards that this settles."""
        clipped: list[Guard] = []
        if not self.padding.skips:
            return low, high, clipped
        code = self.code
        for g in (g for r in self.main.reads if isinstance(r, Access) for g in r.guards):
            c, others = g.index.coeff(d), [x for x in g.index.coeffs if x != d]
            if c <= 0 or g.index.rest or g in self._settled or g in clipped or any(x not in self.env for x in others):
                continue
            base: Index = g.index.const
            for x in others:
                base = code.add(base, code.mul(self.env[x], g.index.coeff(x)))
            # first i with base + c*i >= 0, first i with base + c*i >= extent
            low = code.maximum(low, code.floordiv(code.add(code.mul(base, -1), c - 1), c))
            last = code.add(code.mul(base, -1), g.extent - 1 + c)
            high = code.minimum(high, code.floordiv(last, c))
            clipped.append(g)
        return low, high, clipped

    def _step(self, main: Stage, t: Tile, slots: Slots, copies: int) -> Slots:
        """One turn of the innermost loop."""
        self.operands.forget()
        result: Slots = {}
        outputs = len(main.writes)
        last = self.sched.lane if self.sched.horizontal else self.sched.inner[-1] if self.sched.inner else None
        for m, n, u, o in slots:
            if o:
                continue
            shift = (last, u * self._lane_step(last)) if last is not None and u else None
            reads = [
                self.operands.read(r, t, m, n, shift, self._settled) if isinstance(r, Access) else None
                for r in main.reads
            ]
            accumulators = [slots[(m, n, u, x)] for x in range(outputs)]
            values = emit_body(
                self.code,
                main,
                [*reads, *accumulators],
                self._lanes,
                self._index_of(t, m, n),
                self.operands.buffers,
            )
            for x, v in enumerate(values):
                if self.sched.lane is not None and not isinstance(v.type, VectorType):
                    v = self.code.broadcast(v, self._lanes)
                result[(m, n, u, x)] = v
        self.operands.forget()
        return result

    def _index_of(self, t: Tile, m: int, n: int) -> Callable[[int], Index]:
        return lambda d: self.operands.index(self.main.dims[d], t, m, n)
