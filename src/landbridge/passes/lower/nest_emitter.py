"""Emits a scheduled nest, tile by tile: for each register tile the reduction, then the stages after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from xdsl.dialects import memref
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from landbridge.ir.types import element_count, shape_of
from landbridge.passes.lower.access import Guard
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.guards import KnownRanges, RowEdges
from landbridge.passes.lower.nest import Nest, Register
from landbridge.passes.lower.operands import Operands, Tile
from landbridge.passes.lower.peeling import Peeling
from landbridge.passes.lower.reduction import Reduction
from landbridge.passes.lower.reduction_iterations import Slots
from landbridge.passes.lower.rolled_rows import rolls_rows, rows_together
from landbridge.passes.lower.rows_as_lanes import powers_of_two
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.scan_emitter import ScanEmitter
from landbridge.passes.lower.schedule import Schedule
from landbridge.records import record
from landbridge.sizes.size import Extent, at_least


@record(frozen=True)
class _NPart:
    """The columns of a tile: ``count`` vectors from vector ``first`` on. ``active``: lanes of the last vector, 0 for
    all.
    """

    first: Index
    count: int
    active: Index

    def tile_of(self, row: Index, m_size: int, active: Index) -> Tile:
        """Returns the tile of ``m_size`` rows from ``row`` on; if rows are the lanes, ``active`` lanes of its last
        vector exist.
        """
        return Tile(row, m_size, self.first, self.count, active, self.active)


class NestEmitter:
    """Emits one nest into ``code``.

    ``buffers`` maps the memrefs of the PrimFunc to flat ones. ``env`` holds the indices of the loops around the nest,
    and may change between tiles.
    """

    def __init__(
        self, code: Code, nest: Nest, sched: Schedule, buffers: Mapping[SSAValue, SSAValue], env: dict[int, Index]
    ) -> None:
        self.code, self.nest, self.sched, self.env = code, nest, sched, dict(env)
        self.peeling = Peeling(nest, sched)
        self._known = KnownRanges(nest)
        self.operands = Operands(code, sched, buffers, self.env, self._known)
        #: Memory for the sums of a tile, by the output of the reduction.
        self._memories: dict[int, SSAValue] = {}

    def rows_for(self, runs: Sequence[Run], column: Index, n_run: Run) -> None:
        """Emit all row tiles of ``runs`` for one tile of columns."""
        for run in runs:
            self.row_run(run, 0, run.count, column, n_run)

    def row_run(self, run: Run, low: Index, high: Index, column: Index, n_run: Run) -> None:
        """Emit tiles ``low .. high`` of one run of rows; all tiles if the run has edges.

        If there are fewer rows than a tile has, each is emitted as a tile of one row.
        """

        def emit_rows(active: Index, known: Sequence[Guard]) -> None:
            with self._known.tested(known):
                self._row_run(run, low, high, _NPart(column, n_run.tile, active))

        def emit(active: Index) -> None:
            lanes = self.operands.lanes
            left_out = lanes - active if isinstance(active, int) and active else 0
            inside = self._lanes_inside(column, n_run.tile * lanes - left_out)
            if inside is None:
                emit_rows(active, [])
            else:
                lane_guards = self.peeling.lane_guards
                self.code.when(inside, lambda: emit_rows(active, lane_guards), lambda: emit_rows(active, []))

        self._whole_or_left(n_run, column, emit)

    def _lanes_inside(self, first: Index, count: int) -> SSAValue | None:
        """Returns a condition (i1) under which none of ``count`` lanes from vector ``first`` on reads padding, whatever
        the iteration of the reduction.

        Returns None if no test at run time is needed or possible: lanes have no guards, vectors do not lie along the
        columns, or a guard's index depends on other loops or is not linear.
        """
        code, lanes, conditions = self.code, self.operands.lanes, []
        if self.sched.lane is None or self.sched.lane != self.sched.n_dim:
            return None
        for g in self.peeling.lane_guards:
            low: Index = g.index.const
            span: Extent = 0
            for d, c in g.index.coeffs.items():
                if d == self.sched.lane:
                    low = code.add(low, code.mul(first, c * lanes))
                    span += c * (count - 1)
                elif d in self.env:
                    low = code.add(low, code.mul(self.env[d], c))
                elif self.nest.dims[d].reduction and at_least(c, 0):
                    span += c * (self.nest.dims[d].extent - 1)
                else:
                    return None
            if g.index.rest:
                return None
            conditions += [code.at_most(0, low), code.at_most(code.add(low, span), g.extent - 1)]
        return code.all_of(*conditions) if conditions else None

    def _whole_or_left(self, run: Run, first: Index, emit: Callable[[Index], None]) -> None:
        """Call ``emit`` with the number of active lanes of the last vector in the tile of ``run`` that begins at vector
        ``first``; 0 means all lanes.

        If the extent of the lane loop is open, the emitted code branches between two versions: one for whole tiles, and
        one for the elements left.
        """
        if run.end is None:
            emit(run.mask)
            return
        code, lanes = self.code, self.operands.lanes
        left = code.add(run.end, code.mul(first, -lanes))
        code.when(code.at_most(run.tile * lanes, left), lambda: emit(0), lambda: emit(left))

    def _row_run(self, run: Run, low: Index, high: Index, n_part: _NPart) -> None:
        edges = self.peeling.open_edges(run)
        if run.last is None:
            if edges:
                self._once_each(run, edges, n_part)
            else:
                self._tiles(run, low, high, n_part)
            return
        m_extent = run.last + run.tile
        enough = run.tile + (max(edges.first, edges.last) if edges else 0)

        def in_tiles() -> None:
            if edges:
                self._with_edges(run, edges, n_part)
            else:
                self._tiles(run, low, high, n_part)

        def one_by_one() -> None:
            self._tiles(Run(0, m_extent, 1), 0, m_extent, n_part)

        if at_least(m_extent, enough):
            in_tiles()
        else:
            self.code.when(self.code.at_most(enough, m_extent), in_tiles, one_by_one)

    def _with_edges(self, run: Run, edges: RowEdges, n_part: _NPart) -> None:
        """Emit all tiles of an open number of rows: the first and the last are peeled, in the others all guards of rows
        hold.
        """
        assert run.last is not None and self.sched.m_dim is not None
        if self.peeling.peeled(run) is not None:
            self._tiles(run, 0, run.count, n_part)
            return
        m_dim, last_row = self.sched.m_dim, run.last + run.tile - 1

        def between() -> None:
            with self._known.within(m_dim, edges.first, last_row - edges.last):
                self._tiles(replace(run, last=last_row - edges.last + 1 - run.tile), 1, run.count - 1, n_part)

        self._peeled_tile(run, 0, n_part)
        self.code.when(self.code.at_most(2 * run.tile + 1, last_row + 1), between)
        self._peeled_tile(run, run.last, n_part)

    def _peeled_tile(self, run: Run, row: Extent, n_part: _NPart) -> None:
        """Emit the tile at ``row``, whose rows leave out the iterations that read padding."""
        pieces = self.peeling.tile_pieces(row, run.tile)
        self.tile(replace(n_part.tile_of(row, run.tile, run.mask), pieces=pieces))

    def _once_each(self, run: Run, edges: RowEdges, n_part: _NPart) -> None:
        """Emit all tiles of an open number of rows that must not overlap.

        The first tile is peeled, unless it contains padded rows of the other end. The other tiles test at run time
        whether the guards of their rows hold.
        """
        code, m_extent, enough = self.code, self.nest.dims[self.sched.m_dim].extent, run.tile + edges.last  # type: ignore[index]
        # 1 if the first tile is emitted separately
        is_separate = code.minimum(1, code.maximum(0, code.add(m_extent, 1 - enough)))

        def first() -> None:
            self._peeled_tile(run, 0, n_part)

        if at_least(m_extent, enough):
            first()
        else:
            code.when(code.at_most(enough, m_extent), first)
        self._tiles(run, is_separate, run.count, n_part)

    def _tiles(self, run: Run, low: Index, high: Index, n_part: _NPart) -> None:
        """Emit tiles ``low .. high`` of ``run``."""
        m_dim = self.sched.m_dim
        if m_dim is None or not self.peeling.row_guards:
            self._tiles_in_range(run, low, high, n_part)
            return
        after = run.start + run.count * run.tile if run.last is None else run.last + run.tile
        with self._known.within(m_dim, run.start, after - 1):
            self._tiles_in_range(run, low, high, n_part)

    def _tiles_in_range(self, run: Run, low: Index, high: Index, n_part: _NPart) -> None:
        """Emit tiles ``low .. high`` of ``run``, whose rows are in the range that is known.

        Where the number of rows is open, a tile tests once whether the guards of all its rows hold.
        """
        code, row_guards = self.code, [each.guard for each in self.peeling.row_guards]
        # not for the rows left over: they are few, and most of them are at the edge
        is_tested = run.leads and not all(self._known.holds(g) for g in row_guards)
        peeled = self.peeling.peeled(run)
        limits = self.peeling.row_limits(run.tile) if is_tested and peeled is None else []

        def tile(row: Index, first_new: Index | None, known: Sequence[Guard] = ()) -> None:
            def emit(active: Index) -> None:
                self.tile(replace(n_part.tile_of(row, run.tile, active), first_new=first_new, peeled=peeled))

            with self._known.tested(known):
                self._whole_or_left(run, row, emit)

        def at(row: Index) -> None:
            first_new = row if run.once else None
            if run.last is not None:
                row = code.minimum(row, run.last)
            if not limits:
                tile(row, first_new)
                return
            inside = code.all_of(*(code.at_most(code.mul(row, factor), most) for factor, most in limits))
            code.when(inside, lambda: tile(row, first_new, row_guards), lambda: tile(row, first_new))

        if peeled is None and isinstance(low, int) and isinstance(high, int) and high - low == 1:
            row = run.start + low * run.tile
            if self.peeling.inner_rows is not None and self.peeling.is_peeled(run):
                self._peeled_tile(run, row, n_part)
            else:
                at(row)
            return

        def body(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            at(code.add(code.mul(i, run.tile), run.start))
            return []

        self._retain_columns(n_part)
        code.loop(low, high, 1, [], body)
        self.operands.release()

    def _retain_columns(self, n_part: _NPart) -> None:
        """Load the columns that stay in registers during a loop over tiles of rows."""
        sched, operands = self.sched, self.operands
        if not sched.retained or sched.lane is None:
            return
        operands.forget()
        one_row = n_part.tile_of(0, 1, 0)
        for r, n, i in product(sched.retained, range(n_part.count), range(sched.unrolled)):
            operands.read(r, one_row, 0, n, (sched.lane, i * sched.lanes))
        operands.retain()

    def tile(self, t: Tile) -> None:
        """Emit one register tile: the reduction, then the other stages."""
        registers: Slots = {}
        self.operands.forget()
        if self.nest.is_scan:
            ScanEmitter(self.code, self.nest, self.sched, self.operands, t).emit()
            return
        if self.nest.reduction is not None:
            reduction = Reduction(self.code, self.nest, self.sched, self.peeling, self.operands, t)
            if self._has_rows_for_lanes(t):
                self._along_rows(t, reduction.emit_along_rows())
                return
            registers.update(((m, n, 0, o), value) for (m, n, _, o), value in reduction.emit().items())
        if rolls_rows(self.nest, self.sched, self.operands, t):
            self._rolled(t, registers)
        else:
            self._rows(t, range(t.m_size), registers)

    def _rows(self, t: Tile, rows: Iterable[int], registers: Slots) -> None:
        """Emit the stages after the reduction for ``rows`` of ``t``."""
        self.operands.forget()
        for m in rows:
            if t.first_new is None:
                self._row(t, m, registers)
                continue
            new = self.code.at_most(t.first_new, self.code.add(t.m_start, m))
            self.code.when(new, partial(self._row, t, m, registers))
            self.operands.forget()

    def _rolled(self, t: Tile, sums: Slots) -> None:
        """Emit the stages after ``sums``, which are vectors, in a loop over the rows of ``t``, several at once."""
        code, lanes, size = self.code, self.operands.lanes, t.n_size * self.operands.lanes
        together = rows_together(t)
        whole = t.m_size - t.m_size % together
        memories: dict[int, SSAValue] = {}
        elements: dict[int, Attribute] = {}
        for (m, n, _, output), value in sums.items():
            if m >= whole:
                continue
            if output not in memories:
                assert isinstance(value.type, VectorType)
                elements[output] = value.type.element_type
                memories[output] = self._memory(output, elements[output], whole * size)
            code.store_vector(value, memories[output], m * size + n * lanes, lanes, 0)

        def rows(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            registers: Slots = {}
            for output, memory in memories.items():
                for m, n in product(range(together), range(t.n_size)):
                    at = code.add(code.mul(i, size), m * size + n * lanes)
                    registers[m, n, 0, output] = code.load_vector(memory, at, elements[output], lanes, 0)
            self._rows(replace(t, m_start=code.add(t.m_start, i), m_size=together), range(together), registers)
            return []

        code.loop(0, whole, together, [], rows)
        self._rows(t, range(whole, t.m_size), sums)

    def _memory(self, output: int, element: Attribute, elements: int) -> SSAValue:
        """Returns memory for the sums of a tile, which the tiles of this nest share."""
        known = self._memories.get(output)
        if known is not None and element_count(shape_of(known.type)) >= elements:
            return known
        alloca = memref.AllocaOp.get(element, alignment=64, shape=[elements])
        self._memories[output] = self.code.hoist(alloca)
        return self._memories[output]

    def _row(self, t: Tile, m: int, registers: Slots) -> None:
        for n in range(t.n_size):
            self.point(t, m, n, registers)

    def _has_rows_for_lanes(self, t: Tile) -> bool:
        if not self.sched.rows_are_lanes or t.first_new is not None:
            return False
        return t.m_size in powers_of_two(self.sched.lanes)[1:]

    def _along_rows(self, t: Tile, sums: Slots) -> None:
        """Emit the stages after ``sums``, a vector along the rows for each column."""
        rows = self.sched.m_dim
        assert rows is not None
        sched = replace(self.sched, lane=rows, lanes=t.m_size, horizontal=False, m_dim=None)
        operands = Operands(self.code, sched, self.operands.buffers, {**self.env, rows: t.m_start}, self._known)
        one = replace(t, m_start=0, m_size=1)
        for n in range(t.n_size):
            self._point(operands, one, 0, n, sums)

    def point(self, t: Tile, m: int, n: int, registers: Slots) -> None:
        """Emit the stages after the reduction at element (m, n) of ``t``, and the stores.

        ``registers`` maps (row, column, stage, output) to values. It contains the reduced values; those of the other
        stages are added.
        """
        self._point(self.operands, t, m, n, registers)

    def _point(self, operands: Operands, t: Tile, m: int, n: int, registers: Slots) -> None:
        for number, stage in enumerate(self.nest.stages):
            if not stage.reduces:
                inputs: list[SSAValue | None] = []
                for r in stage.reads:
                    if isinstance(r, Register):
                        inputs.append(registers[(m, n, r.stage, r.output)])
                    else:
                        inputs.append(operands.read(r, t, m, n) if r is not None else None)
                values = operands.body(stage, inputs, t, m, n)
                for o, v in enumerate(values):
                    registers[(m, n, number, o)] = v
            for o, (w, stored) in enumerate(zip(stage.writes, stage.stored, strict=True)):
                if stored:
                    operands.write(w, registers[(m, n, number, o)], t, m, n)
