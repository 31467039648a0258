"""Emits a scheduled nest: row tiles, and for each the reduction and the stages after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.ir import SSAValue

from landbridge.passes.lower.body import emit_body
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.nest import Nest, Register, Stage
from landbridge.passes.lower.operands import Operands, Tile
from landbridge.passes.lower.padding import Padding
from landbridge.passes.lower.reduction import Reduction, Slots
from landbridge.passes.lower.schedule import Run, Schedule


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

    def rows_for(self, runs: list[tuple[Run, bool]], column: Index, columns: Run) -> None:
        """All given row tiles at one column tile."""
        for run, edge in runs:
            self.row_run(run, edge, 0, run.count, column, columns)

    def row_run(self, run: Run, edge: bool, low: Index, high: Index, column: Index, columns: Run) -> None:
        """Tiles ``low .. high`` of one run of rows."""

        def at(row: Index) -> None:
            self.tile(Tile(row, run.tile, column, columns.tile, run.mask, columns.mask, edge))

        if isinstance(low, int) and isinstance(high, int) and high - low == 1:
            at(run.start + low * run.tile)
            return

        def body(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            at(self.code.add(self.code.mul(i, run.tile), run.start))
            return []

        self.code.loop(low, high, 1, [], body)

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
