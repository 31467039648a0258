"""The candidate schedules of a nest on a CPU, with predicted cycles, and the choice of one.

A nest has one form, by what its operands allow: elementwise, transposed in registers, a product with vectors along its
columns, sums along the lanes, or scalars. The candidates of a form are its tiles. The form is a rule, as sums of
another form are added in another order; the tile is the one with the least predicted cycles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.block_loops import (
    last_column_lanes,
)
from landbridge.passes.lower.combiners import combiner
from landbridge.passes.lower.cost import ELEMENTWISE, REGISTER_TILE, SUM_ORDER
from landbridge.passes.lower.lane_body import computes_indices
from landbridge.passes.lower.lane_choice import (
    choose_lane,
    choose_transposed,
    may_be_long,
)
from landbridge.passes.lower.measured_tiles import Tile
from landbridge.passes.lower.nest import Nest, body_size, takes_many
from landbridge.passes.lower.register_block import TileSpace, best_block, weighed_blocks
from landbridge.passes.lower.retained_columns import retained_columns, retaining_tile
from landbridge.passes.lower.row_cut import open_end, row_cut, tiles_along
from landbridge.passes.lower.rows_as_lanes import powers_of_two
from landbridge.passes.lower.runs import Run, dividing_tile, masked_run, tile_runs
from landbridge.passes.lower.schedule import Schedule, VectorUnit, multiplies_vectors
from landbridge.passes.lower.streaming_tile import streaming_tile
from landbridge.passes.lower.strided_columns import most_copied
from landbridge.passes.lower.tile_loops import (
    TileLoops,
    VectorLoop,
    element_bytes,
    most_lanes,
    shortened,
    tile_loops,
    vector_loop,
)
from landbridge.passes.lower.unrolled import unrolled, unrolled_along_lanes, unrolled_in_short_loops
from landbridge.records import record
from landbridge.sizes.size import expected_size


@record(frozen=True)
class ScheduleCandidate:
    """A schedule that may be taken: its form, the rows and columns of its tile, and the predicted cycles of the nest on
    one core, at the expected sizes and with operands in L1 or L2. ``in_order``: it was chosen because it reads large
    memory in order, block by block.
    """

    form: str
    tile: Tile
    cycles: float
    build: Callable[[], Schedule]
    in_order: bool = False


def schedule(
    nest: Nest, machine: VectorUnit, prefix: int = 0, *, repeats: bool = False, may_copy: bool = False
) -> Schedule:
    """Returns the schedule of a simplified nest; its first ``prefix`` dims are loops around it.

    ``repeats``: an element may be computed twice, because results do not overwrite operands. ``may_copy``: tasks may
    copy columns before they begin.
    """
    found = candidates(nest, machine, prefix, repeats=repeats, may_copy=may_copy)
    if machine.tile is not None:
        measured = [each for each in alternatives(found) if each.tile == machine.tile]
        found = [*measured, *(each for each in found if each not in measured)]
    return replace(found[0].build(), candidates=tuple((each.tile, each.cycles) for each in found))


def alternatives(found: Sequence[ScheduleCandidate]) -> list[ScheduleCandidate]:
    """Returns those of ``found``, which ``candidates`` returned, that add up in the order of the first, which is among
    them: measurements may choose any of these.
    """
    first = found[0]
    order = _sum_order(first.build())
    return [first, *(each for each in found[1:] if not first.in_order and _sum_order(each.build()) == order)]


def _sum_order(sched: Schedule) -> object:
    """Returns what the order of the additions of ``sched`` depends on, whatever its tile."""
    lanes = (sched.lane, sched.lanes) if sched.horizontal else None
    return lanes, sched.inner, sched.partial_sums, sched.iterations


def candidates(
    nest: Nest, machine: VectorUnit, prefix: int = 0, *, repeats: bool = False, may_copy: bool = False
) -> list[ScheduleCandidate]:
    """Returns the candidates of a simplified nest, the one to take first and the others by predicted cycles; the
    arguments are those of ``schedule``.
    """
    free = range(prefix, len(nest.dims))
    parallel = [d for d in free if not nest.dims[d].reduction]
    reductions = tuple(d for d in free if nest.dims[d].reduction)
    lanes = most_lanes(nest, machine)
    lane = choose_lane(nest, parallel, lanes, machine.masks)
    transposed = choose_transposed(nest, parallel, lanes) if lane is None else None
    if transposed is not None:
        return [_transposed(nest, machine, parallel, *transposed, repeats=repeats)]
    along = vector_loop(nest, machine, parallel, reductions, lane, may_copy=may_copy)
    loops = tile_loops(nest, machine, parallel, reductions, along, repeats=repeats)
    return _elementwise(loops) if nest.reduction is None else _sums(loops)


def _transposed(
    nest: Nest, machine: VectorUnit, parallel: list[int], lane: int, m_dim: int, *, repeats: bool
) -> ScheduleCandidate:
    """Returns the candidate of an elementwise nest with vectors along ``lane``, transposed from or to memory that is
    contiguous along ``m_dim``.
    """
    extent = nest.dims[lane].extent
    lanes = shortened(extent, most_lanes(nest, machine, ELEMENTWISE.transposed_lanes))
    size = body_size(nest)
    tile = lanes if size <= ELEMENTWISE.transposed_body else min(lanes, ELEMENTWISE.transposed_rows)

    def build() -> Schedule:
        cut, end = row_cut(nest, m_dim, lane, lanes, repeats=repeats), open_end(nest, lane, lanes)
        columns = tiles_along(nest, lane, lane, lanes)
        n_runs = tile_runs(columns, 1, extent % lanes) if end is None else (masked_run(end, lanes, 1),)
        outer = tuple(d for d in parallel if d not in (lane, m_dim))
        return Schedule(lane, lanes, False, m_dim, cut.runs(tile), lane, n_runs, outer, (), size, transposed=True)

    vectors = -(-expected_size(extent) // lanes) * _elements(nest, [d for d in parallel if d != lane])
    shuffles = len(nest.accesses()) * math.log2(max(lanes, 2))  # of two vectors, for each vector that is transposed
    cycles = vectors * (size + shuffles) / machine.core.fma_pipes
    return ScheduleCandidate("transposed", (tile, 1), cycles, build)


def _elementwise(loops: TileLoops) -> list[ScheduleCandidate]:
    """Returns candidates for each number of unrolled copies of a body without sums; the most copies have the fewest
    iterations.
    """
    nest, machine = loops.nest, loops.machine
    most = REGISTER_TILE.rows
    functions = sum(takes_many(op) for s in nest.stages for op in s.body.ops)
    if machine.by_lane and functions:
        most = ELEMENTWISE.copies_with_functions if functions <= ELEMENTWISE.functions_of_a_copy else 1
    size, tiles = body_size(nest), max(expected_size(loops.cut.extent), 1)
    most = min(most, tiles, ELEMENTWISE.copies(size))
    around = _elements(nest, [d for d in loops.parallel if d not in (loops.m_dim, loops.along.lane)])
    if loops.along.lane != loops.m_dim:
        around *= max(1, expected_size(tiles_along(nest, loops.along.lane, loops.along.lane, loops.along.lanes)))

    def candidate(copies: int) -> ScheduleCandidate:
        iterations = -(-tiles // copies)
        cycles = around * (tiles * size + iterations * ELEMENTWISE.iteration) / machine.core.fma_pipes
        return ScheduleCandidate("elementwise", (copies, 1), cycles, lambda: _scheduled(loops, copies, 1))

    return [candidate(copies) for copies in range(most, 0, -1)]


def _sums(loops: TileLoops) -> list[ScheduleCandidate]:
    """Returns the candidates of a nest with a reduction: all tiles that fit the registers."""
    nest, machine, along = loops.nest, loops.machine, loops.along
    strided = [] if along.horizontal else machine.strided_columns(nest, along.lane, along.lanes, loops.m_dim)
    # Padded lanes are tested for one column at a time, and windows are shared by the rows of one column.
    most_n = 1 if along.padded or loops.windows else max(expected_size(loops.n_extent), 1)
    if strided:
        most_n = min(most_n, most_copied(nest, strided, along.lanes, machine.l2_bytes))
    space = TileSpace(
        loops.cut.pieces,
        loops.cut.most,
        most_n,
        machine.registers_of(nest, along.lane),
        loops.iterations,
        0.0 if strided else machine.beyond_l2(nest, along.lane, loops.m_dim),
        loops.window,
        machine.l1_rows(nest, along.lane, loops.m_dim, loops.inner),
        powers_of_two(along.lanes) if loops.rows_are_lanes else (),
        machine.core,
    )
    weighed = weighed_blocks(space)
    best = best_block(space, weighed)
    in_order = _tile_in_order(loops, best, is_plain=loops.is_plain and not strided)
    first = in_order or best
    scale = _repetitions(loops, most_n)

    def candidate(tile: Tile, cycles: float) -> ScheduleCandidate:
        return ScheduleCandidate(_form(along), tile, cycles * scale, lambda: _scheduled(loops, *tile), tile == in_order)

    others = [candidate(tile, cycles) for cycles, tile in sorted(weighed) if tile != first]
    return [candidate(first, space.cycles(*first)), *others]


def _form(along: VectorLoop) -> str:
    if along.lane is None:
        return "scalars"
    if along.horizontal:
        return "sums along lanes"
    return "product of copied columns" if along.copied else "product"


def _repetitions(loops: TileLoops, most_n: int) -> float:
    """Returns by what the estimate of tiles, which is for an iteration of the sums and at most ``most_n`` columns, is
    multiplied for the cycles of the nest.
    """
    nest, along, core = loops.nest, loops.along, loops.machine.core
    taken = {loops.m_dim, loops.n_dim, along.lane}
    times = _elements(nest, [d for d in loops.parallel if d not in taken]) * _elements(nest, loops.inner)
    if along.horizontal:
        times /= along.lanes
    elif along.lane is not None and along.lane not in (loops.m_dim, loops.n_dim):
        times *= -(-expected_size(nest.dims[along.lane].extent) // along.lanes)
    columns = max(expected_size(loops.n_extent), 1)
    whole = along.lanes * element_bytes(nest) == loops.machine.vector_bytes
    return times * columns / most_n / core.fma_pipes * (core.vector_passes if whole else 1)


def _elements(nest: Nest, dims: Sequence[int]) -> float:
    return float(math.prod(max(expected_size(nest.dims[d].extent), 1) for d in dims))


def _tile_in_order(loops: TileLoops, tile: Tile, *, is_plain: bool) -> Tile | None:
    """Returns the tile that reads large memory in order, where tiles like ``tile`` would read pieces of it; else
    None. ``is_plain``: no padding, windows or copies are in the way.
    """
    nest, machine, along = loops.nest, loops.machine, loops.along
    lane, lanes, m_dim, n_dim = along.lane, along.lanes, loops.m_dim, loops.n_dim
    if lane is None or n_dim is None or not machine.unrolls:
        return None
    if loops.rows_are_lanes and m_dim is not None:
        return retaining_tile(nest, lane, lanes, m_dim, n_dim, tile[1], machine.registers, machine.l2_bytes)
    if is_plain and n_dim == lane and lane not in loops.inner:
        return streaming_tile(nest, lane, lanes, m_dim, loops.inner, tile, machine.registers, machine.l2_bytes)
    return None


def _scheduled(loops: TileLoops, m_tile: int, n_tile: int) -> Schedule:
    """Returns the schedule with tiles of ``m_tile`` rows and ``n_tile`` columns."""
    nest, machine, along, inner = loops.nest, loops.machine, loops.along, loops.inner
    lane, lanes, m_dim, n_dim, n_extent = along.lane, along.lanes, loops.m_dim, loops.n_dim, loops.n_extent
    n_tile = dividing_tile(n_extent, n_tile)
    end = open_end(nest, lane, lanes) if n_dim == lane else None
    n_runs: tuple[Run, ...]
    if end is not None:
        n_runs = (masked_run(end, lanes, n_tile),)
    else:
        n_runs = tile_runs(n_extent, n_tile, last_column_lanes(nest, n_dim, lane, lanes))
    m_runs = loops.cut.runs(m_tile)
    rows = m_runs[0].tile
    work = body_size(nest)
    for d in inner:
        work *= expected_size(nest.dims[d].extent)
    unrolled_by = _unrolled(loops, rows, n_tile)
    summed = lane if along.horizontal else None
    prefetches = machine.prefetches and expected_size(n_extent) > machine.l1_columns(nest, lane, lanes, inner)
    return Schedule(
        lane,
        lanes,
        along.horizontal,
        m_dim,
        m_runs,
        n_dim,
        n_runs,
        tuple(d for d in loops.parallel if d not in (m_dim, n_dim, lane)),
        inner,
        work,
        _partial_sums(loops, rows * n_tile) if loops.window is None else 1,
        loops.iterations,
        window=loops.window,
        copied=along.copied,
        unrolled=unrolled_by,
        prefetches=prefetches,
        streams=machine.prefetches and not prefetches,
        prefetches_m=machine.prefetches and machine.l1_rows(nest, lane, m_dim, inner, 2 * rows) == 2 * rows,
        rows_are_lanes=loops.rows_are_lanes,
        retained=retained_columns(nest, summed, lanes, m_dim, n_dim, inner, unrolled_by, n_tile, machine.registers),
    )


def _unrolled(loops: TileLoops, m_tile: int, n_tile: int) -> int:
    """Returns how many iterations of the last reduction loop are unrolled, for a tile of so many rows and columns."""
    along, machine = loops.along, loops.machine
    if not machine.unrolls:
        is_short = not along.horizontal and not multiplies_vectors(loops.nest, along.lane)
        return unrolled_in_short_loops(loops.nest, loops.inner, m_tile, machine.unrolled) if is_short else 1
    if along.horizontal and along.lane is not None:
        return unrolled_along_lanes(loops.nest, along.lane, along.lanes, m_tile, n_tile, machine.registers)
    return unrolled(loops.nest, along.lane, loops.inner, m_tile)


def _partial_sums(loops: TileLoops, accumulators: int) -> int:
    """Returns the number of partial sums that hide the latency of the combining operation; 1 if the accumulators do."""
    nest, along = loops.nest, loops.along
    main = nest.reduction
    if main is None or not loops.inner or combiner(main) is None or len(main.writes) != 1 or computes_indices(main):
        return 1  # a body that computes indices has them for one iteration only
    last = along.lane if along.horizontal and along.lane is not None else loops.inner[-1]
    guards = [g for r in main.reads if isinstance(r, ElementAccess) for g in r.guards]
    if any(g.index.uses(last) for g in guards) or any(last in (b.outer, b.inner) for b in nest.bounds):
        return 1
    extent = nest.dims[last].extent
    terms = expected_size(extent) // (along.lanes if along.horizontal else 1)
    wanted = SUM_ORDER.partial_sums(accumulators)
    may_pay = along.horizontal and may_be_long(extent, wanted * along.lanes, SUM_ORDER.terms_of_a_partial_sum)
    return wanted if terms >= SUM_ORDER.terms_of_a_partial_sum * wanted or may_pay else 1
