"""Tasks of a nest, each of which computes whole sums: an iteration of the outer loops, a tile of columns, and all or
some rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.copied_columns import CopiedColumns, copied_columns
from landbridge.passes.lower.cost import COLUMN_COPIES, TASKS
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule, VectorUnit
from landbridge.records import record
from landbridge.sizes.size import Extent, ceildiv, expected_size, largest, product


@record(frozen=True)
class ColumnTasks:
    """Tasks over outer loops of ``extents``, each for one tile of ``n_run``.

    If ``chunk`` is 0, a task computes all ``m_runs``; otherwise it computes ``chunk`` tiles of the one run of rows.
    ``columns_first``: tasks of the same columns are always adjacent. ``copied``: the columns that each task copies
    before it begins. ``block``: if not 0, a task has all tiles of columns, and computes them for so many tiles of its
    ``chunk`` before the next ones.
    """

    emitter: NestEmitter
    extents: Sequence[Extent]
    n_run: Run
    m_runs: Sequence[Run]
    chunk: int
    columns_first: bool
    copied: CopiedColumns | None = None
    block: int = 0

    @property
    def chunks(self) -> Extent:
        """Returns the number of chunks of rows; 1 (empty) if there are no row tiles, so that nothing is divided
        by 0.
        """
        return largest(ceildiv(self.m_runs[0].count, self.chunk), 1) if self.chunk else 1

    @property
    def count(self) -> Extent:
        """Returns the number of all tasks."""
        return product(self.extents) * (1 if self.block else self.n_run.count) * self.chunks

    def emit(self, code: Code, first: Index, last: Index) -> None:
        """Emit tasks ``first .. last``."""

        def task(t: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            self._task(code, t)
            return []

        code.loop(first, last, 1, [], task)

    def _task(self, code: Code, t: Index) -> None:
        sched, extents = self.emitter.sched, self.extents
        if self.block:
            *rest, chunk = code.unflatten(t, [*extents, self.chunks])
            self.emitter.env.update(zip(sched.outer, rest, strict=True))
            self._blocks(code, chunk)
            return
        if self.columns_first or _reads_columns_again(self.emitter.nest, sched):
            # The chunks of one column are adjacent, so that its weights stay in L1 or L2.
            column, *rest, chunk = code.unflatten(t, [self.n_run.count, *extents, self.chunks])
        else:
            # In the order of memory: otherwise every column would read a line of its own in each outer iteration.
            *rest, column, chunk = code.unflatten(t, [*extents, self.n_run.count, self.chunks])
        self.emitter.env.update(zip(sched.outer, rest, strict=True))
        at = code.add(code.mul(column, self.n_run.tile), self.n_run.start)
        if self.copied is not None:
            self.copied.fill(code, self.emitter, at, self.n_run)
        if not self.chunk:
            self.emitter.rows_for(self.m_runs, at, self.n_run)
            return
        start, stop = self._of_chunk(code, chunk)
        self.emitter.row_run(self.m_runs[0], start, stop, at, self.n_run)

    def _of_chunk(self, code: Code, chunk: Index) -> tuple[Index, Index]:
        """Returns the first tile of rows of ``chunk``, and the one after its last."""
        start = code.times(code.value(chunk), self.chunk)
        return start, code.minimum(code.add(start, self.chunk), self.m_runs[0].count)

    def _blocks(self, code: Code, chunk: Index) -> None:
        """Emit the blocks of ``chunk``, each with all tiles of columns."""
        run, n_run = self.m_runs[0], self.n_run
        start, stop = self._of_chunk(code, chunk)

        def block(low: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            high = code.minimum(code.add(low, self.block), stop)

            def columns(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
                at = code.add(code.mul(i, n_run.tile), n_run.start)
                self.emitter.row_run(run, low, high, at, n_run)
                return []

            code.loop(0, n_run.count, 1, [], columns)
            return []

        code.loop(start, stop, self.block, [], block)


def _reads_columns_again(nest: Nest, sched: Schedule) -> bool:
    """Returns whether an outer loop reads the same column elements in each iteration, as the images of a batch read
    weights.
    """
    if nest.reduction is None or sched.n_dim is None:
        return False
    reads = (r for r in nest.reduction.reads if isinstance(r, ElementAccess) and r.uses(sched.n_dim))
    return any(not r.uses(d) for r in reads for d in sched.outer)


def columns_to_copy(nest: Nest, sched: Schedule, machine: VectorUnit) -> list[ElementAccess]:
    """Returns the reads of columns that tasks copy before they begin."""
    if sched.n_dim is None or sched.horizontal or sched.iterations > 1:
        return []
    return machine.strided_columns(nest, sched.lane, sched.lanes, sched.m_dim)


def copying_tasks(
    code: Code,
    nest: Nest,
    sched: Schedule,
    strided: Sequence[ElementAccess],
    n_run: Run,
    buffers: dict[SSAValue, SSAValue],
    outer: Sequence[Extent],
    columns_first: bool,
) -> list[ColumnTasks]:
    """Returns tasks that copy their columns before they begin.

    Each computes all rows if that gives enough tasks; otherwise the rows are divided, but no task gets so few that its
    copy does not pay.
    """
    copied = copied_columns(code, nest, sched, strided, n_run)
    emitter = NestEmitter(code, copied.nest(nest), sched, buffers | {memory: memory for memory in copied.memories}, {})
    tasks = max(1, expected_size(product(outer)) * sum(expected_size(run.count) for run in sched.n_runs))
    run = emitter.peeling.runs[0]
    tiles = expected_size(run.count)
    parts = min(-(-TASKS.enough_with_copies // tasks), tiles * run.tile // COLUMN_COPIES.rows)
    if parts <= 1:
        return [ColumnTasks(emitter, outer, n_run, emitter.peeling.runs, 0, columns_first, copied)]
    first, *further = emitter.peeling.runs
    pieces = [ColumnTasks(emitter, outer, n_run, [first], -(-tiles // parts), columns_first, copied)]
    if further and sched.copied:
        pieces.append(ColumnTasks(emitter, outer, n_run, further, 0, columns_first, copied))
    elif further:
        plain = NestEmitter(code, nest, sched, buffers, {})
        pieces.append(ColumnTasks(plain, outer, n_run, further, 0, columns_first))
    return pieces
