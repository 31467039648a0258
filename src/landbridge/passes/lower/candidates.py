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
    choose_m_dim,
    choose_n_dim,
    choose_other_n_dim,
    last_column_lanes,
    shares_vectors,
)
from landbridge.passes.lower.combiners import combiner
from landbridge.passes.lower.cost import ELEMENTWISE, REGISTER_TILE, SUM_ORDER
from landbridge.passes.lower.lane_body import computes_indices
from landbridge.passes.lower.lane_choice import (
    choose_copied_lane,
    choose_lane,
    choose_other_lane,
    choose_transposed,
    lies_along_sums,
    may_be_long,
    whole_vectors,
)
from landbridge.passes.lower.lane_walk import lane_guards
from landbridge.passes.lower.nest import Nest, body_size, takes_many, widest_bytes
from landbridge.passes.lower.register_block import TileSpace, best_block, weighed_blocks
from landbridge.passes.lower.retained_columns import retained_columns, retaining_tile
from landbridge.passes.lower.row_cut import RowCut, open_end, row_cut, tiles_along
from landbridge.passes.lower.row_windows import row_window
from landbridge.passes.lower.rows_as_lanes import powers_of_two, rows_may_be_lanes
from landbridge.passes.lower.runs import Run, dividing_tile, masked_run, tile_runs
from landbridge.passes.lower.schedule import Schedule, VectorUnit
from landbridge.passes.lower.streaming_tile import streaming_tile
from landbridge.passes.lower.strided_columns import most_copied
from landbridge.passes.lower.unrolled import unrolled, unrolled_along_lanes
from landbridge.passes.lower.windows import SharedWindow, grouped_iterations, scalar_window, vector_window
from landbridge.records import record
from landbridge.sizes.size import Extent, expected_size

Tile = tuple[int, int]


@record(frozen=True)
class Candidate:
    """A schedule that may be taken: its form, the rows and columns of its tile, and the predicted cycles of the nest on
    one core, at the expected sizes and with operands in L1 or L2.
    """

    form: str
    tile: Tile
    cycles: float
    build: Callable[[], Schedule]


@record(frozen=True)
class VectorLoop:
    """The loop that vectors of ``lanes`` lie along; None if there is none.

    ``horizontal``: it is a reduction loop, whose lanes are summed. ``copied``: tasks copy columns, so that vectors lie
    along it. ``padded``: its lanes are tested.
    """

    lane: int | None
    lanes: int
    horizontal: bool = False
    copied: bool = False
    padded: bool = False


@record(frozen=True)
class TileLoops:
    """The loops of a nest and their roles in its tiles, with the fields of ``Schedule``, before a tile is chosen.

    ``windows``: rows share the folds of a window, as in pools; ``window``: they share loads. ``inner``: the reduction
    loops in order.
    """

    nest: Nest
    machine: VectorUnit
    parallel: tuple[int, ...]
    inner: tuple[int, ...]
    along: VectorLoop
    m_dim: int | None
    n_dim: int | None
    cut: RowCut
    windows: bool
    rows_are_lanes: bool
    iterations: int = 1
    window: SharedWindow | None = None

    @property
    def n_extent(self) -> Extent:
        """Returns the number of columns."""
        return tiles_along(self.nest, self.n_dim, self.along.lane, self.along.lanes)

    @property
    def is_plain(self) -> bool:
        """Returns whether no padding, windows or copies are in the way of other tiles."""
        along = self.along
        shared = self.windows or self.window is not None or self.iterations > 1
        return not (shared or along.padded or along.copied)


def schedule(
    nest: Nest, machine: VectorUnit, prefix: int = 0, *, repeats: bool = False, may_copy: bool = False
) -> Schedule:
    """Returns the schedule of a simplified nest; its first ``prefix`` dims are loops around it.

    ``repeats``: an element may be computed twice, because results do not overwrite operands. ``may_copy``: tasks may
    copy columns before they begin.
    """
    found = candidates(nest, machine, prefix, repeats=repeats, may_copy=may_copy)
    return replace(found[0].build(), candidates=tuple((each.tile, each.cycles) for each in found))


def candidates(
    nest: Nest, machine: VectorUnit, prefix: int = 0, *, repeats: bool = False, may_copy: bool = False
) -> list[Candidate]:
    """Returns the candidates of a simplified nest, the one to take first and the others by predicted cycles; the
    arguments are those of ``schedule``.
    """
    free = range(prefix, len(nest.dims))
    parallel = [d for d in free if not nest.dims[d].reduction]
    reductions = tuple(d for d in free if nest.dims[d].reduction)
    lanes = _most_lanes(nest, machine)
    lane = choose_lane(nest, parallel, lanes, machine.masks)
    transposed = choose_transposed(nest, parallel, lanes) if lane is None else None
    if transposed is not None:
        return [_transposed(nest, machine, parallel, *transposed, repeats=repeats)]
    along = _vector_loop(nest, machine, parallel, reductions, lane, may_copy=may_copy)
    loops = _tile_loops(nest, machine, parallel, reductions, along, repeats=repeats)
    return _elementwise(loops) if nest.reduction is None else _sums(loops)


def _most_lanes(nest: Nest, machine: VectorUnit, most: int | None = None) -> int:
    """Returns how many elements of ``nest`` a vector holds, at most ``most``."""
    lanes = min(machine.vector_bytes // max(_element_bytes(nest), 1), machine.max_lanes)
    return max(1, lanes if most is None else min(lanes, most))


def _vector_loop(
    nest: Nest,
    machine: VectorUnit,
    parallel: list[int],
    reductions: tuple[int, ...],
    lane: int | None,
    *,
    may_copy: bool,
) -> VectorLoop:
    """Returns the loop for vectors of a nest that is not transposed; ``lane`` is that without strides, if there is
    one.
    """
    lanes, horizontal = _most_lanes(nest, machine), False
    copied = _copied_lane(nest, machine, parallel, reductions, lanes) if lane is None and may_copy else None
    if copied is not None:
        lane = copied
    if lane is None:
        lane, horizontal = choose_other_lane(nest, parallel, reductions, lanes, machine.masks)
    if lane is None:
        return VectorLoop(None, 1)
    padded = any(lane_guards(r, lane) for s in nest.stages for r in s.reads if isinstance(r, ElementAccess))
    if horizontal:
        lanes = whole_vectors(nest, lane, lanes)
    return VectorLoop(lane, lanes, horizontal, copied is not None, padded)


def _tile_loops(
    nest: Nest,
    machine: VectorUnit,
    parallel: list[int],
    reductions: tuple[int, ...],
    along: VectorLoop,
    *,
    repeats: bool,
) -> TileLoops:
    """Returns the roles of the loops of ``nest``, whose vectors lie ``along`` a loop."""
    lane, horizontal = along.lane, along.horizontal
    m_dim, n_dim = _tile_dims(nest, machine, parallel, reductions, along)
    window = None if horizontal else vector_window(nest, lane, m_dim, reductions)
    windows = row_window(nest, lane, m_dim, reductions) is not None
    shared = windows or window is not None
    is_shared = shared or along.padded or m_dim is None or shares_vectors(nest, lane, m_dim)
    if n_dim == lane and not is_shared:
        enough = expected_size(tiles_along(nest, n_dim, lane, along.lanes)) >= machine.core.fma_latency
        m_dim = None if enough else m_dim  # rows would only be more streams of memory
    if lane is not None and not horizontal:
        lanes = _shortened(nest.dims[lane].extent, along.lanes)
        along = replace(along, lanes=lanes)
        if nest.reduction is None and not along.padded and nest.dims[lane].extent != lanes:
            m_dim = lane  # the tile of an elementwise nest is its lane loop, unrolled
    cut = row_cut(nest, m_dim, lane, along.lanes, repeats=repeats)
    rows_are_lanes = horizontal and not cut.once and rows_may_be_lanes(nest, lane, m_dim, along.lanes)
    iterations, inner = 1, reductions
    if machine.by_lane and not horizontal and not shared and not along.copied:
        iterations = grouped_iterations(nest, lane, m_dim, reductions, machine.vector_bytes)
        window = scalar_window(nest, lane, m_dim, reductions, machine.vector_bytes) if iterations == 1 else None
    if window is not None:
        inner, iterations = (*(d for d in reductions if d != window.dim), window.dim), window.iterations
    around = tuple(parallel)
    return TileLoops(
        nest, machine, around, inner, along, m_dim, n_dim, cut, windows, rows_are_lanes, iterations, window
    )


def _tile_dims(
    nest: Nest, machine: VectorUnit, parallel: list[int], reductions: tuple[int, ...], along: VectorLoop
) -> tuple[int | None, int | None]:
    """Returns the loops of the rows and of the columns of a tile."""
    n_dim = along.lane if along.padded else None
    if nest.reduction and not along.horizontal:
        n_dim = choose_n_dim(nest, parallel, along.lane, along.lanes)
    m_dim = choose_m_dim(nest, parallel, along.lane, n_dim, () if along.horizontal else reductions, machine.core)
    if along.horizontal and along.lane is not None:
        n_dim = choose_other_n_dim(nest, parallel, along.lane, m_dim)
    return m_dim, n_dim


def _shortened(extent: Extent, lanes: int) -> int:
    """Returns the lanes of a vector along a loop of ``extent``, which may be shorter than ``lanes``."""
    return min(lanes, 1 << (extent - 1).bit_length()) if isinstance(extent, int) else lanes


def _copied_lane(
    nest: Nest, machine: VectorUnit, parallel: list[int], reductions: tuple[int, ...], lanes: int
) -> int | None:
    """Returns the lane loop for which tasks copy columns that are contiguous along the sums; None if that does
    not pay.
    """
    if lanes > ELEMENTWISE.transposed_lanes:
        return None
    lane = choose_copied_lane(nest, parallel, reductions, lanes)
    if lane is None or choose_n_dim(nest, parallel, lane, lanes) != lane:
        return None
    m_dim = choose_m_dim(nest, parallel, lane, lane, reductions, machine.core)
    strided = machine.strided_columns(nest, lane, lanes, m_dim)
    transposed = [a for a in nest.accesses() if lies_along_sums(a, lane, reductions)]
    return lane if all(any(a is r for r in strided) for a in transposed) else None


def _transposed(
    nest: Nest, machine: VectorUnit, parallel: list[int], lane: int, m_dim: int, *, repeats: bool
) -> Candidate:
    """Returns the candidate of an elementwise nest with vectors along ``lane``, transposed from or to memory that is
    contiguous along ``m_dim``.
    """
    extent = nest.dims[lane].extent
    lanes = _shortened(extent, _most_lanes(nest, machine, ELEMENTWISE.transposed_lanes))
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
    return Candidate("transposed", (tile, 1), cycles, build)


def _elementwise(loops: TileLoops) -> list[Candidate]:
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

    def candidate(copies: int) -> Candidate:
        iterations = -(-tiles // copies)
        cycles = around * (tiles * size + iterations * ELEMENTWISE.iteration) / machine.core.fma_pipes
        return Candidate("elementwise", (copies, 1), cycles, lambda: _scheduled(loops, copies, 1))

    return [candidate(copies) for copies in range(most, 0, -1)]


def _sums(loops: TileLoops) -> list[Candidate]:
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

    def candidate(tile: Tile, cycles: float) -> Candidate:
        return Candidate(_form(along), tile, cycles * scale, lambda: _scheduled(loops, *tile))

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
    whole = along.lanes * _element_bytes(nest) == loops.machine.vector_bytes
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
        return 1
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


def _element_bytes(nest: Nest) -> int:
    """Returns the bytes of the widest element in the reduction, or in all stages if there is none; lanes count such
    elements.
    """
    stages = nest.stages if nest.reduction is None else [nest.reduction]
    return max(widest_bytes(s.body) for s in stages)
