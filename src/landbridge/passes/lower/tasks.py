"""The tasks of a PrimFunc on a CPU: chooses which loops are divided among threads, and emits a range of tasks."""

from __future__ import annotations

from functools import partial

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from landbridge.ir.kernel_attributes import first_scratch, is_in_place
from landbridge.ir.stages import PrimView
from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.candidates import schedule
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.column_tasks import ColumnTasks, columns_to_copy, copying_tasks
from landbridge.passes.lower.cost import TASKS
from landbridge.passes.lower.narrow_columns import narrow_last_column
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.peeled_tiles import peeled_schedules
from landbridge.passes.lower.prefix import shrink, task_prefix
from landbridge.passes.lower.row_passes import BlockTasks, row_passes, totals_memory
from landbridge.passes.lower.scan_schedule import scan_schedule
from landbridge.passes.lower.schedule import Schedule, VectorUnit
from landbridge.passes.lower.scratch import (
    elements_in_a_task,
    fits_stack,
    in_parts,
    part_count,
    stack_refusal,
    used_temporaries,
)
from landbridge.passes.lower.shared_rows import tiles_of_a_block
from landbridge.passes.lower.simplify import simplify
from landbridge.passes.lower.streamed_sums import StreamedTasks, streaming
from landbridge.records import record
from landbridge.sizes.size import Extent, at_least, ceildiv, expected_size, never_below, product


@record(frozen=True)
class TaskPlan:
    """The number of tasks, and the schedules of the nests; one nest may have several."""

    count: Extent
    schedules: tuple[tuple[Nest, Schedule], ...]


def emit_tasks(
    code: Code,
    prim: PrimView,
    nests: list[Nest],
    machine: VectorUnit,
    buffers: dict[SSAValue, SSAValue],
    begin: Index,
    end: Index,
    columns_first: bool = False,
) -> TaskPlan:
    """Emit tasks ``begin .. end`` of ``nests``, none of which is empty; returns how many tasks there are and the
    schedules.

    ``columns_first``: tasks of the same columns are always adjacent. ``buffers`` maps the PrimFunc's memrefs to flat
    ones, and receives the temporaries. Raises CodegenError if the temporaries do not fit the stack and have no scratch.
    """
    if not nests:
        return TaskPlan(0, ())
    if len(nests) == 1:
        repeats = not is_in_place(prim.function) and may_repeat(nests[0])
        return _single(code, simplify(nests[0]), machine, buffers, begin, end, repeats, columns_first)
    return _several(code, prim, nests, machine, buffers, begin, end)


def may_repeat(nest: Nest) -> bool:
    """Returns whether an element may be computed twice, because ``nest`` writes no buffer that it reads."""
    written = {w.buffer for s in nest.stages for w, stored in zip(s.writes, s.stored, strict=True) if stored}
    read = {r.buffer for s in nest.stages for r in s.reads if isinstance(r, ElementAccess)}
    return not written & (read | nest.loaded())


def _grain(count: Extent, work: int) -> int:
    """Returns how many of ``count`` iterations of ``work`` operations form a task, so that it has at least
    ``TASKS.operations`` operations, and at least 1; of an open number, whatever is expected, as many may come.
    """
    enough = max(1, TASKS.operations // max(work, 1))
    return max(1, min(count, enough)) if isinstance(count, int) else enough


def _bounds(code: Code, begin: Index, end: Index, count: Extent, grain: int) -> tuple[Index, Index]:
    """Returns the iterations of tasks ``begin .. end``; the code is the same for every ``grain``, 1 included."""
    first, last = code.times(code.value(begin), grain), code.times(code.value(end), grain)
    return first, code.minimum(last, count)


def _single(
    code: Code,
    nest: Nest,
    machine: VectorUnit,
    buffers: dict[SSAValue, SSAValue],
    begin: Index,
    end: Index,
    repeats: bool,
    columns_first: bool,
) -> TaskPlan:
    """Emit a PrimFunc of one nest: its tasks are iterations of its outer loops, tiles of columns and chunks of rows."""
    pieces: list[ColumnTasks | BlockTasks | StreamedTasks] = []
    work: Extent = 0
    scratch: SSAValue | None = None
    schedules: list[tuple[Nest, Schedule]] = []
    if nest.is_scan:
        schedules.append((nest, scan_schedule(nest, machine)))
    else:
        for part, sched in peeled_schedules(nest, partial(schedule, machine=machine, repeats=repeats, may_copy=True)):
            narrow = narrow_last_column(part, sched, machine, repeats=repeats)
            schedules += [(part, each) for each in narrow]
    for nest, sched in schedules:
        emitter = NestEmitter(code, nest, sched, buffers, {})
        m_runs = emitter.peeling.runs
        outer = [nest.dims[d].extent for d in sched.outer]
        tile_work = sched.work * (1 if sched.horizontal else sched.lanes)
        few = expected_size(product(outer) * sum(r.count for r in sched.n_runs)) < TASKS.enough
        at_edges = any(emitter.peeling.is_peeled(run) for run in m_runs)
        how = None if sched.copied else row_passes(nest, sched, machine, m_runs)
        if how is not None and scratch is None:
            scratch = totals_memory(code, nest)
        strided = [] if how is not None or at_edges else columns_to_copy(nest, sched, machine)
        streams = None if sched.copied or how is not None or strided else streaming(nest, sched, machine)
        for n_run in sched.n_runs:
            if streams is not None:
                pieces.append(StreamedTasks(code, nest, sched, streams, m_runs, buffers))
            elif how is not None and scratch is not None:
                pieces.append(BlockTasks(code, nest, sched, how, n_run, m_runs, buffers, scratch))
            elif strided:
                pieces += copying_tasks(code, nest, sched, strided, n_run, buffers, outer, columns_first)
            elif few and at_least(n_run.count, 1) and not at_edges:
                block = tiles_of_a_block(nest, sched, machine.l1_bytes)
                for run in m_runs:
                    columns = n_run.tile * (expected_size(n_run.count) if block else 1)
                    chunk = _grain(run.count, tile_work * run.tile * columns)
                    pieces.append(ColumnTasks(emitter, outer, n_run, [run], chunk, columns_first, block=block))
            else:
                pieces.append(ColumnTasks(emitter, outer, n_run, m_runs, 0, columns_first))
            tiles = sum(r.count * r.tile for r in m_runs) * n_run.count * n_run.tile
            work += tile_work * tiles * product(outer)
    counts = [p.count for p in pieces]
    total = sum(counts)
    grain = _grain(expected_size(total), expected_size(work) // max(expected_size(total), 1))
    low, high = _bounds(code, begin, end, total, grain)
    base: Extent = 0
    for piece, count in zip(pieces, counts, strict=True):
        first = code.maximum(code.add(low, -base), 0) if piece is not pieces[0] else low
        last = code.minimum(code.add(high, -base), count) if len(pieces) > 1 else high
        piece.emit(code, first, last)
        base += count
    return TaskPlan(ceildiv(total, grain), tuple(schedules))


def _several(
    code: Code,
    prim: PrimView,
    nests: list[Nest],
    machine: VectorUnit,
    buffers: dict[SSAValue, SSAValue],
    begin: Index,
    end: Index,
) -> TaskPlan:
    """Emit a PrimFunc of several nests: its tasks are iterations of the loops they share; inside, nest follows nest."""
    length = task_prefix(nests)
    extents = [nests[0].dims[i].extent for i in range(length)]
    count = product(extents)
    temporaries = used_temporaries(prim, nests)
    first = first_scratch(prim.function)
    parts, each = (count, 1) if first is None else (part_count(count), ceildiv(count, TASKS.enough))
    if first is not None:
        arguments = prim.function.body.block.args[first : first + len(temporaries)]
        buffers.update({t: buffers[a] for t, a in zip(temporaries, arguments, strict=True)})
    elif fits_stack(prim, nests, length):
        for t in temporaries:
            ty = t.type
            assert isinstance(ty, MemRefType)
            elements = never_below(elements_in_a_task(t, length))
            buffers[t] = code.add_op(memref.AllocaOp.get(ty.element_type, alignment=64, shape=[elements]))
    else:
        raise stack_refusal(prim, nests, length)
    prepared: list[tuple[Nest, Schedule]] = []
    work = 0
    in_memory = set(temporaries)
    around = length if first is None else length + 1
    for n in nests:
        small_nest = shrink(n, in_memory, length) if first is None else in_parts(n, in_memory, length, parts)
        small_nest = simplify(small_nest, keep=around)
        repeats = not is_in_place(prim.function) and may_repeat(small_nest)
        choose = partial(schedule, machine=machine, prefix=around, repeats=repeats)
        for part, sched in peeled_schedules(small_nest, choose, around):
            prepared.append((part, sched))
            work += sched.work * expected_size(product(d.extent for d in part.dims[around:] if not d.reduction))
    grain = _grain(expected_size(parts), work * expected_size(each))
    low, high = _bounds(code, begin, end, parts, grain)

    def iteration(t: Index, part: list[Index]) -> None:
        env = dict(enumerate([*code.unflatten(t, extents), *part]))
        for nest, sched in prepared:
            emitter = NestEmitter(code, nest, sched, buffers, env)
            nested(code, nest, sched, emitter, list(sched.outer))

    def task(t: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
        if first is None:
            iteration(t, [])
            return []
        start = code.mul(t, each)

        def within(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            iteration(i, [t])
            return []

        code.loop(start, code.minimum(code.add(start, each), count), 1, [], within)
        return []

    code.loop(low, high, 1, [], task)
    return TaskPlan(ceildiv(parts, grain), tuple(prepared))


def nested(code: Code, nest: Nest, sched: Schedule, emitter: NestEmitter, outer: list[int]) -> None:
    """Emit a nest inside a task: its ``outer`` loops, then all its rows and columns."""
    if outer:

        def body(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            emitter.env[outer[0]] = i
            nested(code, nest, sched, emitter, outer[1:])
            return []

        code.loop(0, nest.dims[outer[0]].extent, 1, [], body)
        return
    m_runs = emitter.peeling.runs
    for n_run in sched.n_runs:

        def at(i: Index) -> None:
            emitter.rows_for(m_runs, code.add(code.mul(i, n_run.tile), n_run.start), n_run)  # noqa: B023

        if n_run.count == 1:
            at(0)
        else:

            def column(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
                at(i)
                return []

            code.loop(0, n_run.count, 1, [], column)
