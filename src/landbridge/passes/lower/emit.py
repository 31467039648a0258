"""Emits a scheduled nest: outer loops, register tiles, reduction loops, epilogue."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, VectorType
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Attribute, SSAValue

from landbridge.errors import CodegenError
from landbridge.passes.lower.access import Access, Guard, Linear
from landbridge.passes.lower.body import REASSOCIATE, emit_body
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.nest import Nest, Register, Stage, scalar_attr
from landbridge.passes.lower.schedule import Run, Schedule, combiner

#: Row, column and partial-sum copy of an accumulator, and the output it belongs to.
Slot: TypeAlias = tuple[int, int, int, int]
Slots: TypeAlias = dict[Slot, SSAValue]

#: Edge tiles emitted one by one; beyond, padded reads test their bounds at run time.
MAX_EDGE_TILES = 6

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


@dataclass(frozen=True)
class Tile:
    """A register tile: first row and column (in iterations, columns of a lane in vectors), sizes, lanes kept in
    the last vector (0 = all), and whether its rows touch padding, so that each is decided at compile time."""

    row: Index
    rows: int
    column: Index
    columns: int
    row_mask: int = 0
    column_mask: int = 0
    edge: bool = False


class NestEmitter:
    """Emits one nest into ``code``. ``buffers`` maps the PrimFunc's memrefs to flat ones."""

    def __init__(
        self, code: Code, nest: Nest, sched: Schedule, buffers: Mapping[SSAValue, SSAValue], env: dict[int, Index]
    ) -> None:
        self.code, self.nest, self.sched, self.buffers = code, nest, sched, buffers
        self.env = dict(env)
        self._skip = nest.reduction is not None and _skips_padding(nest.reduction)
        self._lanes = sched.lanes if sched.lane is not None else 1
        self._loads: dict[tuple[object, ...], SSAValue] = {}

    # ---- loops around the tiles -------------------------------------------------------------------------------

    def row_tiles(self) -> list[tuple[Run, bool]]:
        """Runs of row tiles, and whether each is an edge tile."""
        runs = list(self.sched.row_runs)
        span = self._inner_rows()
        if span is None:
            return [(r, False) for r in runs]
        low, high = span
        result: list[tuple[Run, bool]] = []
        for run in runs:
            inside = [
                run.start + k * run.tile >= low and run.start + (k + 1) * run.tile <= high for k in range(run.count)
            ]
            k = 0
            while k < run.count:
                end = k + 1
                while inside[k] and end < run.count and inside[end]:
                    end += 1
                result.append((Run(run.start + k * run.tile, end - k, run.tile, run.mask), not inside[k]))
                k = end
        return result

    def _row_guards(self) -> list[tuple[Guard, int]]:
        """Guards that tie the row dim to one reduction dim, with that dim; empty when they are not of that form."""
        rows, main = self.sched.rows, self.nest.reduction
        if rows is None or main is None or not self._skip or rows == self.sched.lane:
            return []
        found = []
        for r in main.reads:
            for g in r.guards if isinstance(r, Access) else ():
                if g.index.coeff(rows):
                    others = [d for d in g.index.coeffs if d != rows]
                    if len(others) != 1 or g.index.rest or not self.nest.dims[others[0]].reduction:
                        return []
                    found.append((g, others[0]))
        return found

    def _inner_rows(self) -> tuple[int, int] | None:
        """The rows whose every read is inside; None when there is nothing to split or too much."""
        guards = self._row_guards()
        rows = self.sched.rows
        if not guards or rows is None:
            return None
        extent = self.nest.dims[rows].extent

        def inside(m: int) -> bool:
            for g, r in guards:
                first = g.index.const + g.index.coeff(rows) * m
                last = first + g.index.coeff(r) * (self.nest.dims[r].extent - 1)
                if min(first, last) < 0 or max(first, last) >= g.extent:
                    return False
            return True

        good = [m for m in range(extent) if inside(m)]
        low, high = (good[0], good[-1] + 1) if good else (extent, extent)
        edges = sum(
            not (low <= run.start + k * run.tile and run.start + (k + 1) * run.tile <= high)
            for run in self.sched.row_runs
            for k in range(run.count)
        )
        return (low, high) if edges <= MAX_EDGE_TILES else None

    def rows_for(self, runs: list[tuple[Run, bool]], column: Index, columns: Run) -> None:
        """All given row tiles at one column tile."""
        for run, edge in runs:
            self.row_run(run, edge, 0, run.count, column, columns)

    def row_run(self, run: Run, edge: bool, low: Index, high: Index, column: Index, columns: Run) -> None:
        """Tiles ``low .. high`` of one run of rows."""

        def at(row: Index) -> None:
            self._loads = {}
            self.tile(Tile(row, run.tile, column, columns.tile, run.mask, columns.mask, edge))

        if isinstance(low, int) and isinstance(high, int) and high - low == 1:
            at(run.start + low * run.tile)
            return

        def body(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            at(self.code.add(self.code.mul(i, run.tile), run.start))
            return []

        self.code.loop(low, high, 1, [], body)

    # ---- one tile ---------------------------------------------------------------------------------------------

    def tile(self, t: Tile) -> None:
        """Reduce, then run the epilogue, for one register tile."""
        main = self.nest.reduction
        registers: dict[tuple[int, int, int, int], SSAValue] = {}
        if main is not None:
            sums = self._reduce(main, t)
            for (m, n, _, o), value in sums.items():
                registers[(m, n, 0, o)] = value
        self._loads = {}
        for m in range(t.rows):
            for n in range(t.columns):
                self._epilogue(t, m, n, registers)

    def _epilogue(self, t: Tile, m: int, n: int, registers: dict[tuple[int, int, int, int], SSAValue]) -> None:
        horizontal = self.sched.horizontal
        lanes = 1 if horizontal else self._lanes
        for number, stage in enumerate(self.nest.stages):
            if not stage.reduces:
                inputs = [
                    registers[(m, n, r.stage, r.output)] if isinstance(r, Register) else self._read(r, t, m, n)
                    for r in stage.reads
                ]
                values = emit_body(self.code, stage, inputs, lanes, self._index_of(stage, t, m, n), self.buffers)
                for o, v in enumerate(values):
                    registers[(m, n, number, o)] = v
            for o, (w, stored) in enumerate(zip(stage.writes, stage.stored, strict=True)):
                if stored:
                    self._write(w, registers[(m, n, number, o)], t, m, n)

    def _index_of(self, stage: Stage, t: Tile, m: int, n: int) -> Callable[[int], Index]:
        return lambda d: self._linear(stage.dims[d], t, m, n)

    # ---- reduction --------------------------------------------------------------------------------------------

    def _reduce(self, main: Stage, t: Tile) -> Slots:
        sched = self.sched
        horizontal, copies = sched.horizontal, self._copies(t)
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

    def _copies(self, t: Tile) -> int:
        """Partial sums that hide the latency of the combining operation when the tile alone cannot."""
        main, sched = self.nest.reduction, self.sched
        if main is None or not sched.inner or combiner(main) is None or len(main.writes) != 1:
            return 1
        last = sched.lane if sched.horizontal and sched.lane is not None else sched.inner[-1]
        if self._guarded(last) or any(last in (b.outer, b.inner) for b in self.nest.bounds):
            return 1
        steps = self.nest.dims[last].extent // self._lane_step(last)
        wanted = 4 if t.rows * t.columns <= 2 else 2 if t.rows * t.columns <= 4 else 1
        return wanted if steps >= 4 * wanted and self._lanes > 1 else 1

    def _lane_step(self, d: int) -> int:
        return self._lanes if self.sched.horizontal and d == self.sched.lane else 1

    def _guarded(self, d: int) -> bool:
        main = self.nest.reduction
        assert main is not None
        return any(g.index.uses(d) for r in main.reads if isinstance(r, Access) for g in r.guards)

    def _combine(self, main: Stage, a: SSAValue, b: SSAValue) -> SSAValue:
        op = next(iter(main.body.args[len(main.reads)].uses)).operation
        properties = dict(op.properties)
        return self.code.add_op(type(op).create(operands=[a, b], result_types=[a.type], properties=properties))

    def _merge_copies(self, main: Stage, slots: Slots, t: Tile, copies: int) -> Slots:
        merged: Slots = {}
        for m in range(t.rows):
            for n in range(t.columns):
                parts = [slots[(m, n, u, 0)] for u in range(copies)]
                while len(parts) > 1:
                    parts = [self._combine(main, a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
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
            properties = {"kind": kind, "fastmath": REASSOCIATE}
            total = self.code.emit(vector.ReductionOp, [value], element, **properties)
            sums[key] = self._combine(main, start, total)
        extent = self.nest.dims[lane].extent
        if extent % self._lanes == 0:
            return sums
        scalar = replace(self.sched, lane=None, horizontal=False)
        tail = NestEmitter(self.code, self.nest, scalar, self.buffers, self.env)
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
        low, high = self._range(d, t, lows or {})
        if t.edge and any(r == d for _, r in self._row_guards()):
            assert isinstance(low, int) and isinstance(high, int)
            for i in range(low, high):
                self.env[d] = i
                active = {m for m in range(t.rows) if self._row_inside(t, m, d, i)}
                part = {k: v for k, v in slots.items() if k[0] in active}
                if part:
                    slots = {**slots, **self._loops(main, t, rest, part, copies, lows)}
            del self.env[d]
            return slots
        lane_step = self._lane_step(d)
        step = lane_step * (copies if not rest else 1)
        keys = list(slots)
        if not rest and (copies > 1 or lane_step > 1):
            assert isinstance(low, int) and isinstance(high, int)
            main_high = low + (high - low) // step * step
            values = self._loop(main, t, d, rest, low, main_high, step, keys, list(slots.values()), copies, lows)
            slots = dict(zip(keys, values, strict=True))
            whole_high = low + (high - low) // lane_step * lane_step
            if copies > 1 and main_high < whole_high:
                first = [k for k in keys if k[2] == 0]
                start = [slots[k] for k in first]
                values = self._loop(main, t, d, rest, main_high, whole_high, lane_step, first, start, 1, lows)
                slots.update(zip(first, values, strict=True))
            return slots
        values = self._loop(main, t, d, rest, low, high, step, keys, list(slots.values()), copies, lows)
        return dict(zip(keys, values, strict=True))

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

    def _range(self, d: int, t: Tile, lows: Mapping[int, int]) -> tuple[Index, Index]:
        """The bounds of reduction loop ``d``: clipped by padded tiles and, outside register rows, by padding."""
        code = self.code
        low: Index = lows.get(d, 0)
        high: Index = self.nest.dims[d].extent
        for b in self.nest.bounds:
            if b.inner == d and b.extent % b.tile:
                outer = self.env.get(b.outer)
                if outer is not None:
                    left = code.add(b.extent, code.mul(outer, -b.tile))
                    high = code.minimum(high, left)
        main = self.nest.reduction
        if not self._skip or main is None:
            return low, high
        rows = self.sched.rows
        for r in main.reads:
            for g in r.guards if isinstance(r, Access) else ():
                c = g.index.coeff(d)
                if c <= 0 or (rows is not None and g.index.uses(rows)):
                    continue
                others = [x for x in g.index.coeffs if x != d]
                if any(x not in self.env for x in others):
                    continue
                base: Index = g.index.const
                for x in others:
                    base = code.add(base, code.mul(self.env[x], g.index.coeff(x)))
                # first i with base + c*i >= 0, first i with base + c*i >= extent
                low = code.maximum(low, code.floordiv(code.add(code.mul(base, -1), c - 1), c))
                last = code.add(code.mul(base, -1), g.extent - 1 + c)
                high = code.minimum(high, code.floordiv(last, c))
        return low, high

    def _row_inside(self, t: Tile, m: int, d: int, i: int) -> bool:
        assert isinstance(t.row, int) and self.sched.rows is not None
        return all(
            r != d
            or 0 <= g.index.const + g.index.coeff(self.sched.rows) * (t.row + m) + g.index.coeff(d) * i < g.extent
            for g, r in self._row_guards()
        )

    def _step(self, main: Stage, t: Tile, slots: Slots, copies: int) -> Slots:
        """One turn of the innermost loop."""
        self._loads = {}
        result: Slots = {}
        outputs = len(main.writes)
        last = self.sched.lane if self.sched.horizontal else self.sched.inner[-1] if self.sched.inner else None
        for m, n, u, o in slots:
            if o:
                continue
            shift = (last, u * self._lane_step(last)) if last is not None and u else None
            reads = [self._read(r, t, m, n, shift, in_loop=True) for r in main.reads if isinstance(r, Access)]
            accumulators = [slots[(m, n, u, x)] for x in range(outputs)]
            values = emit_body(
                self.code,
                main,
                [*reads, *accumulators],
                self._lanes,
                self._index_of(main, t, m, n),
                self.buffers,
                reassociate=self.sched.lane is None,
            )
            for x, v in enumerate(values):
                if self.sched.lane is not None and not isinstance(v.type, VectorType):
                    v = self.code.broadcast(v, self._lanes)
                result[(m, n, u, x)] = v
        self._loads = {}
        return result

    # ---- memory -----------------------------------------------------------------------------------------------

    def _dim(self, d: int, t: Tile, m: int, n: int) -> tuple[Index, int]:
        """Loop ``d`` at element (m, n) of the tile, as a base and a constant."""
        lanes = self._lanes
        if d == self.sched.rows:
            if d == self.sched.lane:
                return self.code.mul(t.row, lanes), m * lanes
            return t.row, m
        if d == self.sched.columns:
            if d == self.sched.lane:
                return self.code.mul(t.column, lanes), n * lanes
            return t.column, n
        if d == self.sched.lane and d not in self.env:
            return 0, 0
        return self.env[d], 0

    def _linear(self, x: Linear, t: Tile, m: int, n: int, shift: tuple[int, int] | None = None) -> Index:
        code = self.code
        base: Index = 0
        constant = x.const
        for d, c in x.coeffs.items():
            start, offset = self._dim(d, t, m, n)
            base = code.add(base, code.mul(start, c))
            constant += c * offset
            if shift and shift[0] == d:
                constant += c * shift[1]

        def dim(d: int) -> Index:
            start, offset = self._dim(d, t, m, n)
            return code.add(start, offset + (shift[1] if shift and shift[0] == d else 0))

        for s, e in x.rest:
            base = code.add(base, code.mul(code.affine(e, dim), s))
        return code.add(base, constant)

    def _kept(self, t: Tile, m: int, n: int) -> int:
        """Lanes kept of the vector at (m, n); 0 = all."""
        if self.sched.lane is not None and self.sched.lane == self.sched.rows and m == t.rows - 1:
            return t.row_mask
        if n == t.columns - 1:
            return t.column_mask
        return 0

    def _read(
        self, a: Access, t: Tile, m: int, n: int, shift: tuple[int, int] | None = None, in_loop: bool = False
    ) -> SSAValue:
        sched = self.sched
        key = (
            id(a),
            m if (sched.rows is not None and a.uses(sched.rows)) or self._guards_use(a, sched.rows) else 0,
            n if sched.columns is not None and a.uses(sched.columns) else 0,
            shift[1] if shift and a.uses(shift[0]) else 0,
        )
        if (found := self._loads.get(key)) is None:
            found = self._loads[key] = self._load(a, t, m, n, shift, in_loop)
        return found

    @staticmethod
    def _guards_use(a: Access, d: int | None) -> bool:
        return d is not None and any(g.index.uses(d) for g in a.guards)

    def _load(self, a: Access, t: Tile, m: int, n: int, shift: tuple[int, int] | None, in_loop: bool) -> SSAValue:
        def plain() -> SSAValue:
            where = self._linear(a.index, t, m, n, shift)
            if self.sched.lane is not None and a.index.coeff(self.sched.lane):
                return self.code.load_vector(self.buffers[a.buffer], where, a.element, self._lanes, self._kept(t, m, n))
            return self.code.load(self.buffers[a.buffer], where, a.element)

        checks = [g for g in a.guards if not (in_loop and self._settled(g, t))]
        if not checks:
            return plain()
        inside: SSAValue | None = None
        for g in checks:
            test = self.code.inside(self._linear(g.index, t, m, n, shift), g.extent)
            inside = test if inside is None else self.code.emit(arith.AndIOp, [inside, test], test.type)
        assert inside is not None and a.fill is not None
        fill = a.fill
        vectors = self.sched.lane is not None and a.index.coeff(self.sched.lane) != 0
        return self.code.choose(
            inside,
            plain,
            lambda: self.code.splat(fill, a.element, self._lanes) if vectors else self.code.constant(fill, a.element),
        )

    def _settled(self, g: Guard, t: Tile) -> bool:
        """Whether loop bounds or edge tiles already keep this guard true."""
        if not self._skip:
            return False
        rows = self.sched.rows
        if rows is not None and g.index.uses(rows):
            return any(g is x for x, _ in self._row_guards()) and self._inner_rows() is not None
        return any(self.nest.dims[d].reduction and c > 0 for d, c in g.index.coeffs.items()) and not g.index.rest

    def _write(self, a: Access, value: SSAValue, t: Tile, m: int, n: int) -> None:
        where = self._linear(a.index, t, m, n)
        if self.sched.lane is not None and not self.sched.horizontal and a.index.coeff(self.sched.lane):
            if not isinstance(value.type, VectorType):
                value = self.code.broadcast(value, self._lanes)
            self.code.store_vector(value, self.buffers[a.buffer], where, self._lanes, self._kept(t, m, n))
        else:
            self.code.store(value, self.buffers[a.buffer], where)


def identity(combine: str, element: Any) -> Attribute:
    """The value that ``combine`` leaves as it is."""
    if isinstance(element, IntegerType):
        w = element.width.data
        number = {
            "arith.addi": 0, "arith.muli": 1, "arith.ori": 0, "arith.andi": -1, "arith.maxui": 0,
            "arith.minui": -1, "arith.maxsi": -(1 << (w - 1)), "arith.minsi": (1 << (w - 1)) - 1,
        }[combine]  # fmt: skip
        return IntegerAttr(number, element)
    value = {"arith.addf": 0.0, "arith.mulf": 1.0, "arith.maximumf": -math.inf, "arith.minimumf": math.inf}[combine]
    return FloatAttr(value, element)


def _skips_padding(stage: Stage) -> bool:
    """Whether leaving out padded iterations gives the same result as computing them.

    True for ``acc + x``, ``acc + x * w`` with padding 0, and for max and min padded with their identity.
    """
    combine = combiner(stage)
    padded = [r for r in stage.reads if isinstance(r, Access) and r.guards]
    if combine is None or not padded:
        return combine is not None
    accumulator = stage.body.args[len(stage.reads)]
    op = next(iter(accumulator.uses)).operation
    other = op.operands[1] if op.operands[0] is accumulator else op.operands[0]
    arguments = dict(zip(stage.body.args, stage.reads, strict=False))
    if other in arguments:
        factors = [other]
    elif (
        combine in ("arith.addf", "arith.addi")
        and other.owner in stage.body.ops
        and other.owner.name
        in (
            "arith.mulf",
            "arith.muli",
        )
    ):
        factors = list(other.owner.operands)
    else:
        return False
    if any(f not in arguments for f in factors):
        return False
    for r in padded:
        assert r.fill is not None
        if scalar_attr(r.fill) != scalar_attr(identity(combine, r.element)):
            return False
    return True
