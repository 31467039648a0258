"""Emits a scheduled nest: row tiles, and for each the reduction and the stages after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from xdsl.ir import SSAValue

from landbridge.passes.lower.body import emit_body
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.nest import Nest, Register, Stage
from landbridge.passes.lower.operands import Operands, RowPadding, Tile
from landbridge.passes.lower.padding import Padding
from landbridge.passes.lower.reduction import Reduction, Slots
from landbridge.passes.lower.row_edges import OpenEdges
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule
from landbridge.sizes.size import Size, at_least


class NestEmitter:
    """Emits one nest into ``code``. ``buffers`` maps the PrimFunc's memrefs to flat ones; ``env`` holds the indices of
    the loops around it, and may be changed between tiles."""

    def __init__(
        self, code: Code, nest: Nest, sched: Schedule, buffers: Mapping[SSAValue, SSAValue], env: dict[int, Index]
    ) -> None:
        self.code, self.nest, self.sched, self.env = code, nest, sched, dict(env)
        self._padding = Padding(nest, sched)
        self.operands = Operands(code, sched, buffers, self.env)
        self.row_tiles = self._padding.row_tiles()

    def rows_for(self, runs: list[tuple[Run, RowPadding]], column: Index, columns: Run) -> None:
        """All given row tiles at one column tile."""
        for run, padding in runs:
            self.row_run(run, padding, 0, run.count, column, columns)

    def row_run(self, run: Run, padding: RowPadding, low: Index, high: Index, column: Index, columns: Run) -> None:
        """Tiles ``low .. high`` of one run of rows, or all where it has edges; too few rows are done one by one.

        Nothing where it depends on a Size how many lanes there are, and that is none.
        """
        kept = [mask for mask in (run.mask, columns.mask) if isinstance(mask, Size) and not at_least(mask, 1)]
        if kept:
            some = self.code.all_of(*(self.code.at_most(1, mask) for mask in kept))
            self.code.when(some, lambda: self._row_run(run, padding, low, high, column, columns))
        else:
            self._row_run(run, padding, low, high, column, columns)

    def _row_run(self, run: Run, padding: RowPadding, low: Index, high: Index, column: Index, columns: Run) -> None:
        if run.last is None:
            self._tiles(run, padding, low, high, column, columns)
            return
        edges = self._padding.open_edges(run)
        rows = run.last + run.tile
        enough = run.tile + (max(edges.first, edges.last) if edges else 0)

        def in_tiles() -> None:
            if edges:
                self._with_edges(run, edges, column, columns)
            else:
                self._tiles(run, padding, low, high, column, columns)

        def one_by_one() -> None:
            self._tiles(Run(0, rows, 1), RowPadding.TESTED, 0, rows, column, columns)

        if at_least(rows, enough):
            in_tiles()
        else:
            self.code.when(self.code.at_most(enough, rows), in_tiles, one_by_one)

    def _with_edges(self, run: Run, edges: OpenEdges, column: Index, columns: Run) -> None:
        """All tiles of an open number of rows: the first and the last are decided row by row, those between are
        inside."""
        assert run.last is not None
        between = replace(run, last=run.last - edges.last)
        self.tile(Tile(0, run.tile, column, columns.tile, run.mask, columns.mask, RowPadding.BY_TURN))
        self.code.when(
            self.code.at_most(2 * run.tile + 1, run.last + run.tile),
            lambda: self._tiles(between, RowPadding.INSIDE, 1, run.count - 1, column, columns),
        )
        self.tile(Tile(run.last, run.tile, column, columns.tile, run.mask, columns.mask, RowPadding.BY_TURN))

    def _tiles(self, run: Run, padding: RowPadding, low: Index, high: Index, column: Index, columns: Run) -> None:
        code = self.code
        tested = run.last is not None and padding is RowPadding.TESTED
        limits = self._padding.row_limits(run.tile) if tested else []

        def tile(row: Index, padding: RowPadding) -> None:
            self.tile(Tile(row, run.tile, column, columns.tile, run.mask, columns.mask, padding))

        def at(row: Index) -> None:
            if run.last is not None:
                row = code.minimum(row, run.last)
            if not limits:
                tile(row, padding)
                return
            inside = code.all_of(*(code.at_most(code.mul(row, factor), most) for factor, most in limits))
            code.when(inside, lambda: tile(row, RowPadding.INSIDE), lambda: tile(row, RowPadding.TESTED))

        if isinstance(low, int) and isinstance(high, int) and high - low == 1:
            at(run.start + low * run.tile)
            return

        def body(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            at(code.add(code.mul(i, run.tile), run.start))
            return []

        code.loop(low, high, 1, [], body)

    def tile(self, t: Tile) -> None:
        """Reduce, then run the other stages, for one register tile."""
        registers: Slots = {}
        self.operands.forget()
        if self.nest.reduction is not None:
            reduction = Reduction(self.code, self.nest, self.sched, self._padding, self.operands, t)
            registers.update(((m, n, 0, o), value) for (m, n, _, o), value in reduction.emit().items())
        self.operands.forget()
        for m in range(t.rows):
            for n in range(t.columns):
                self.point(t, m, n, registers)

    def point(self, t: Tile, m: int, n: int, registers: Slots) -> None:
        """The stages after the reduction at element (m, n) of ``t``, and the stores. ``registers`` holds the reduced
        values, and receives those of the other stages: row, column, stage and output give the value."""
        lanes = 1 if self.sched.horizontal else self.operands.lanes
        for number, stage in enumerate(self.nest.stages):
            if not stage.reduces:
                inputs: list[SSAValue | None] = []
                for r in stage.reads:
                    if isinstance(r, Register):
                        inputs.append(registers[(m, n, r.stage, r.output)])
                    else:
                        inputs.append(self.operands.read(r, t, m, n) if r is not None else None)
                values = emit_body(
                    self.code, stage, inputs, lanes, self._index_of(stage, t, m, n), self.operands.buffers
                )
                for o, v in enumerate(values):
                    registers[(m, n, number, o)] = v
            for o, (w, stored) in enumerate(zip(stage.writes, stage.stored, strict=True)):
                if stored:
                    self.operands.write(w, registers[(m, n, number, o)], t, m, n)

    def _index_of(self, stage: Stage, t: Tile, m: int, n: int) -> Callable[[int], Index]:
        return lambda d: self.operands.index(stage.dims[d], t, m, n)
