"""Tasks of a nest over its outer loops, its column tiles, and all rows or some: each tile from the first term of its
sums to the last."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.copied_columns import CopiedColumns, copied_columns
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.operands import RowPadding
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule, VectorUnit
from landbridge.passes.lower.strided_columns import FEWEST_ROWS
from landbridge.records import record
from landbridge.sizes.size import Extent, ceildiv, expected_size, largest, product

#: Tasks that are enough where each copies its columns.
_FEW_COPIES = 16


@record(frozen=True)
class ColumnTasks:
    """Tasks of one kind, over outer loops of ``extents``: a run of column tiles over all rows (``chunk`` 0), or over
    chunks of one run of rows. ``columns_first``: those of one column follow each other in any case.
    ``copied``: columns that each task copies first."""

    emitter: NestEmitter
    extents: Sequence[Extent]
    columns: Run
    rows: list[tuple[Run, RowPadding]]
    chunk: int
    columns_first: bool
    copied: CopiedColumns | None = None

    @property
    def chunks(self) -> Extent:
        """Tasks along the rows; one, of nothing, where there are no tiles, so that nothing is divided by 0."""
        return largest(ceildiv(self.rows[0][0].count, self.chunk), 1) if self.chunk else 1

    @property
    def count(self) -> Extent:
        """All tasks."""
        return product(self.extents) * self.columns.count * self.chunks

    def emit(self, code: Code, first: Index, last: Index) -> None:
        """Tasks ``first .. last``."""

        def task(t: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            self._task(code, t)
            return []

        code.loop(first, last, 1, [], task)

    def _task(self, code: Code, t: Index) -> None:
        sched, extents = self.emitter.sched, self.extents
        if self.columns_first or _reads_columns_again(self.emitter.nest, sched):
            # Chunks of one column after the other: its weights stay in a cache that is near.
            column, *rest, chunk = code.unflatten(t, [self.columns.count, *extents, self.chunks])
        else:  # as memory goes: else each column would have a line of its own wherever the outer loops go
            *rest, column, chunk = code.unflatten(t, [*extents, self.columns.count, self.chunks])
        self.emitter.env.update(zip(sched.outer, rest, strict=True))
        at = code.add(code.mul(column, self.columns.tile), self.columns.start)
        if self.copied is not None:
            self.copied.fill(code, self.emitter, at, self.columns)
        if not self.chunk:
            self.emitter.rows_for(self.rows, at, self.columns)
            return
        run, padding = self.rows[0]
        start = code.times(code.value(chunk), self.chunk)
        stop = code.minimum(code.add(start, self.chunk), run.count)
        self.emitter.row_run(run, padding, start, stop, at, self.columns)


def _reads_columns_again(nest: Nest, sched: Schedule) -> bool:
    """Whether some outer loop reads what it has read of a column again, as convolutions do weights."""
    if nest.reduction is None or sched.columns is None:
        return False
    reads = (r for r in nest.reduction.reads if isinstance(r, ElementAccess) and r.uses(sched.columns))
    return any(not r.uses(d) for r in reads for d in sched.outer)


def strided_of(nest: Nest, sched: Schedule, machine: VectorUnit) -> list[ElementAccess]:
    """The columns that tasks copy first."""
    if sched.columns is None or sched.horizontal or sched.iterations > 1:
        return []
    return machine.strided_columns(nest, sched.lane, sched.lanes, sched.rows)


def copying_tasks(
    code: Code,
    nest: Nest,
    sched: Schedule,
    strided: Sequence[ElementAccess],
    columns: Run,
    buffers: dict[SSAValue, SSAValue],
    outer: Sequence[Extent],
    columns_first: bool,
) -> list[ColumnTasks]:
    """Tasks that copy their columns first: of all rows where these are tasks enough, else of as few as are worth it."""
    copied = copied_columns(code, nest, sched, strided, columns)
    emitter = NestEmitter(
        code, copied.nest(nest), sched, buffers | {capacity: capacity for capacity in copied.rooms}, {}
    )
    tasks = max(1, expected_size(product(outer)) * sum(expected_size(run.count) for run in sched.column_runs))
    run = emitter.row_tiles[0][0]
    tiles = expected_size(run.count)
    parts = min(-(-_FEW_COPIES // tasks), tiles * run.tile // FEWEST_ROWS)
    if parts <= 1:
        return [ColumnTasks(emitter, outer, columns, emitter.row_tiles, 0, columns_first, copied)]
    first, *further = emitter.row_tiles
    pieces = [ColumnTasks(emitter, outer, columns, [first], -(-tiles // parts), columns_first, copied)]
    if further and sched.copied:
        pieces.append(ColumnTasks(emitter, outer, columns, further, 0, columns_first, copied))
    elif further:
        plain = NestEmitter(code, nest, sched, buffers, {})
        pieces.append(ColumnTasks(plain, outer, columns, further, 0, columns_first))
    return pieces
