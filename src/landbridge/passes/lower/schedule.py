"""Schedules a nest for a CPU: chooses the vector lanes, the register tile and the tasks.

A register tile has ``rows x columns`` accumulators (M and N of a product). ``n_dim`` are vectors along the lane loop,
or along a loop that reads other weights; each row uses each of these vectors again. The tile must fit the vector
registers of the target: the accumulators, one vector per column, and one broadcast (Goto and van de Geijn, "Anatomy of
High-Performance Matrix Multiplication", 2008, section 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import Operation

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.block_loops import choose_m_dim, choose_n_dim, choose_other_n_dim, shares_vectors
from landbridge.passes.lower.cached_columns import MANY, beyond_l2_share, l1_columns
from landbridge.passes.lower.combiners import combiner
from landbridge.passes.lower.cost import ELEMENTWISE, REGISTER_TILE, SUM_ORDER
from landbridge.passes.lower.grouped_iterations import grouped_iterations
from landbridge.passes.lower.l1_rows import l1_rows
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
from landbridge.passes.lower.nest import Nest, body_size, widest_bytes
from landbridge.passes.lower.number_window import NumberWindow, number_window
from landbridge.passes.lower.register_block import TileSpace, register_block
from landbridge.passes.lower.retained_columns import retained_columns, retaining_tile
from landbridge.passes.lower.row_cut import open_end, row_cut, tiles_along
from landbridge.passes.lower.row_windows import row_window
from landbridge.passes.lower.rows_as_lanes import powers_of_two, rows_may_be_lanes
from landbridge.passes.lower.runs import Run, dividing_tile, masked_run, tile_runs
from landbridge.passes.lower.streaming_tile import streaming_tile
from landbridge.passes.lower.strided_columns import most_copied, strided_columns
from landbridge.passes.lower.unrolled import unrolled, unrolled_along_lanes
from landbridge.passes.lower.vector_window import VectorWindow, vector_window
from landbridge.records import record
from landbridge.sizes.size import Size, expected_size
from landbridge.targets.machine import CpuCore

#: Operations of the dialect ``math`` that take one instruction.
_SHORT = frozenset(f"math.{name}" for name in ("absf", "ceil", "copysign", "floor", "fma", "sqrt", "trunc"))


@record(frozen=True)
class VectorUnit:
    """The properties of a target's vectors and caches that schedules depend on.

    ``vector_bytes`` is the width of a vector, ``registers`` the number of vector registers, and ``max_lanes`` the most
    lanes of a vector of any element type. ``by_lane``: one instruction multiplies a vector by one lane of another, and
    a scalar in memory must be loaded first; otherwise it is a memory operand. ``masks``: a load may be masked.
    ``l1_bytes`` is the size of L1, ``l2_bytes`` that of the caches of one core; 0 if unknown. ``prefetches``: prefetch
    instructions pay. ``narrow_is_cheaper``: multiplying vectors of half the width may take less time; ``two_passes``:
    it is known to take half. ``unrolls``: long loops are unrolled. ``sums_in_factors``: each sum of products of two
    vectors takes two registers. ``core``: its pipes and caches, from the table of CPUs.
    """

    vector_bytes: int
    registers: int
    max_lanes: int = 64
    by_lane: bool = False
    masks: bool = True
    l1_bytes: int = 0
    l2_bytes: int = 0
    prefetches: bool = False
    narrow_is_cheaper: bool = True
    two_passes: bool = False
    unrolls: bool = False
    sums_in_factors: bool = False
    core: CpuCore = CpuCore()

    def registers_of(self, nest: Nest, lane: int | None) -> int:
        """Returns the registers for the sums of ``nest`` and what they are computed from."""
        return self.registers // 2 if self.sums_in_factors and _multiplies_vectors(nest, lane) else self.registers

    def l1_columns(self, nest: Nest, lane: int | None, lanes: int, inner: Sequence[int]) -> int:
        """Returns how many columns of ``nest`` stay in L1."""
        return l1_columns(nest, lane, lanes, inner, self.l1_bytes) if self.l1_bytes else MANY

    def beyond_l2(self, nest: Nest, lane: int | None, m_dim: int | None) -> float:
        """Returns the share of passes over all ``m_dim`` of ``nest`` in which columns come from beyond L2."""
        return beyond_l2_share(nest, lane, m_dim, self.l2_bytes) if self.l2_bytes else 0.0

    def l1_rows(
        self, nest: Nest, lane: int | None, m_dim: int | None, inner: Sequence[int], most: int = REGISTER_TILE.rows
    ) -> int:
        """Returns the largest number of rows, up to ``most``, whose cache lines stay in L1 between iterations."""
        if not self.l1_bytes:
            return most
        return l1_rows(nest, lane, m_dim, inner, self.l1_bytes, self.core.l1_way_bytes, most)

    def strided_columns(self, nest: Nest, lane: int | None, lanes: int, m_dim: int | None) -> list[ElementAccess]:
        """Returns the reads of columns of ``nest`` that tasks copy before their rows read them."""
        inner = [d for d, dim in enumerate(nest.dims) if dim.reduction]
        l1_columns = self.l1_columns(nest, lane, lanes, inner)
        return strided_columns(nest, lane, lanes, m_dim, l1_columns, self.l2_bytes, self.core.l2_sets)


@record(frozen=True)
class Schedule:
    """How a nest runs.

    ``lane`` is the loop that vectors of ``lanes`` lie along; if ``horizontal``, it is a reduction loop, and lanes are
    summed at the end. ``m_dim`` and ``n_dim`` are the loops of the M and N axes of the register tile (or None);
    ``m_runs`` and ``n_runs`` are how they are cut into tiles. If ``n_dim`` is the lane loop, it counts vectors.
    ``outer`` loops are around the tile; ``inner`` are the reduction loops, in order. ``work`` is the number of
    operations per result. "Rows" of a tile are its iterations along M, "columns" those along N.

    ``partial_sums`` accumulators per result hide the latency of additions. Every tile has the same number, so that sums
    are added in the same order everywhere in the result. ``iterations`` of the last reduction loop are unrolled
    together, so that scalars which all lanes share are loaded for all of them at once; ``scalars`` is their window, if
    rows share some, and ``vectors`` the window of vectors that rows share. ``unrolled`` iterations of the last
    reduction loop are in its body, each with loads of its own.

    ``transposed``: accesses that are contiguous along the rows are transposed in registers. ``copied``: columns are
    contiguous along the sums, and tasks transpose them when they copy them. ``prefetches``: vectors that all rows share
    are prefetched. ``streams``: they may be prefetched into L2 instead. ``prefetches_m``: L1 has capacity for the
    scalars of the next tile of rows too, which may be prefetched. ``rows_are_lanes``: the lanes of stages after a sum
    over lanes are the rows of a tile. ``retained``: reads of columns that stay in registers while a task goes from one
    tile of rows to the next.
    """

    lane: int | None
    lanes: int
    horizontal: bool
    m_dim: int | None
    m_runs: tuple[Run, ...]
    n_dim: int | None
    n_runs: tuple[Run, ...]
    outer: tuple[int, ...]
    inner: tuple[int, ...]
    work: int
    partial_sums: int = 1
    iterations: int = 1
    transposed: bool = False
    scalars: NumberWindow | None = None
    vectors: VectorWindow | None = None
    copied: bool = False
    prefetches: bool = False
    prefetches_m: bool = False
    streams: bool = False
    unrolled: int = 1
    rows_are_lanes: bool = False
    retained: tuple[ElementAccess, ...] = ()


def schedule(
    nest: Nest, machine: VectorUnit, prefix: int = 0, *, repeats: bool = False, may_copy: bool = False
) -> Schedule:
    """Returns the schedule of a simplified nest; its first ``prefix`` dims are loops around it.

    ``repeats``: an element may be computed twice, because results do not overwrite operands. ``may_copy``: tasks may
    copy columns before they begin.
    """
    free = range(prefix, len(nest.dims))
    parallel = [d for d in free if not nest.dims[d].reduction]
    reductions = tuple(d for d in free if nest.dims[d].reduction)
    width = max(_element_bytes(nest), 1)
    lanes = max(1, min(machine.vector_bytes // width, machine.max_lanes))
    lane, horizontal = choose_lane(nest, parallel, lanes, machine.masks), False
    if lane is None and (transposed := choose_transposed(nest, parallel, lanes)) is not None:
        return _transposed(nest, machine, parallel, *transposed, repeats=repeats)
    copied = _copied_lane(nest, machine, parallel, reductions, lanes) if lane is None and may_copy else None
    if copied is not None:
        lane = copied
    if lane is None:
        lane, horizontal = choose_other_lane(nest, parallel, reductions, lanes, machine.masks)
    padded = lane is not None and any(
        lane_guards(r, lane) for s in nest.stages for r in s.reads if isinstance(r, ElementAccess)
    )
    if lane is None:
        lanes = 1
    elif horizontal:
        lanes = whole_vectors(nest, lane, lanes)
    reduction = nest.reduction
    n_dim = lane if padded else None
    if reduction and not horizontal:
        n_dim = choose_n_dim(nest, parallel, lane, lanes)
    m_dim = choose_m_dim(nest, parallel, lane, n_dim, () if horizontal else reductions, machine.core)
    if horizontal and lane is not None:
        n_dim = choose_other_n_dim(nest, parallel, lane, m_dim)
    vectors = None if horizontal else vector_window(nest, lane, m_dim, reductions)
    windows = row_window(nest, lane, m_dim, reductions) is not None
    shared = windows or vectors is not None
    if m_dim is not None and n_dim == lane and not padded and not shared and not shares_vectors(nest, lane, m_dim):
        enough = expected_size(tiles_along(nest, n_dim, lane, lanes)) >= machine.core.fma_latency
        m_dim = None if enough else m_dim  # rows would only be more streams of memory
    if lane is not None and not horizontal:
        extent = nest.dims[lane].extent
        if isinstance(extent, int):
            lanes = min(lanes, 1 << (extent - 1).bit_length())
        if not reduction and not padded and extent != lanes:
            m_dim = lane  # the tile of an elementwise nest is its lane loop, unrolled
    cut = row_cut(nest, m_dim, lane, lanes, repeats=repeats)
    n_extent = tiles_along(nest, n_dim, lane, lanes)
    rows_are_lanes = horizontal and not cut.once and rows_may_be_lanes(nest, lane, m_dim, lanes)
    iterations, scalars = 1, None
    if machine.by_lane and not horizontal and not shared and copied is None:
        iterations = grouped_iterations(nest, lane, m_dim, reductions, machine.vector_bytes)
        scalars = number_window(nest, lane, m_dim, reductions, machine.vector_bytes) if iterations == 1 else None
        iterations = iterations if scalars is None else scalars.iterations
    if vectors is not None:
        reductions, iterations = (*(d for d in reductions if d != vectors.dim), vectors.dim), vectors.iterations
    if reduction:
        strided = [] if horizontal else machine.strided_columns(nest, lane, lanes, m_dim)
        beyond_l2 = 0.0 if strided else machine.beyond_l2(nest, lane, m_dim)
        # Padded lanes are tested for one column at a time, and windows are shared by the rows of one column.
        most_n = 1 if padded or windows else max(expected_size(n_extent), 1)
        if strided:
            most_n = min(most_n, most_copied(nest, strided, lanes, machine.l2_bytes))
        space = TileSpace(
            cut.pieces,
            cut.most,
            most_n,
            machine.registers_of(nest, lane),
            iterations,
            beyond_l2,
            scalars or vectors,
            machine.l1_rows(nest, lane, m_dim, reductions),
            powers_of_two(lanes) if rows_are_lanes else (),
            machine.core,
        )
        m_tile, n_tile = register_block(space)
        is_plain = iterations == 1 and scalars is None and not (shared or padded or strided or copied is not None)
        tile = m_tile, n_tile
        m_tile, n_tile = _tile_in_order(
            nest, machine, lane, lanes, rows_are_lanes, is_plain, m_dim, n_dim, reductions, tile
        )
    else:
        most = REGISTER_TILE.rows
        if machine.by_lane and (functions := _functions(nest)):
            most = ELEMENTWISE.copies_with_functions if functions <= ELEMENTWISE.functions_of_a_copy else 1
        m_tile, n_tile = min(_unroll(nest, max(expected_size(cut.extent), 1)), most), 1
    n_tile = dividing_tile(n_extent, n_tile)
    ends_within = open_end(nest, lane, lanes) if n_dim == lane else None
    if ends_within is not None:
        n_runs: tuple[Run, ...] = (masked_run(ends_within, lanes, n_tile),)
    else:
        n_runs = tile_runs(n_extent, n_tile, _n_mask(nest, n_dim, lane, lanes))
    taken = {m_dim, n_dim, lane}
    outer = tuple(d for d in parallel if d not in taken)
    work = body_size(nest)
    for d in reductions:
        work *= expected_size(nest.dims[d].extent)
    m_runs = cut.runs(m_tile)
    unrolled_by = _unrolled(nest, machine, lane, lanes, horizontal, reductions, (m_runs[0].tile, n_tile))
    summed = lane if horizontal else None
    retained = retained_columns(nest, summed, lanes, m_dim, n_dim, reductions, unrolled_by, n_tile, machine.registers)
    two_tiles, partial_sums = 2 * m_runs[0].tile, 1
    if scalars is None and vectors is None:
        partial_sums = _partial_sums(nest, lane, lanes, horizontal, reductions, m_runs[0].tile * n_tile)
    prefetches = machine.prefetches and expected_size(n_extent) > machine.l1_columns(nest, lane, lanes, reductions)
    return Schedule(
        lane,
        lanes,
        horizontal,
        m_dim,
        m_runs,
        n_dim,
        n_runs,
        outer,
        reductions,
        work,
        partial_sums,
        iterations,
        scalars=scalars,
        vectors=vectors,
        copied=copied is not None,
        unrolled=unrolled_by,
        prefetches=prefetches,
        streams=machine.prefetches and not prefetches,
        prefetches_m=machine.prefetches and machine.l1_rows(nest, lane, m_dim, reductions, two_tiles) == two_tiles,
        rows_are_lanes=rows_are_lanes,
        retained=retained,
    )


def _tile_in_order(
    nest: Nest,
    machine: VectorUnit,
    lane: int | None,
    lanes: int,
    rows_are_lanes: bool,
    is_plain: bool,
    m_dim: int | None,
    n_dim: int | None,
    inner: tuple[int, ...],
    tile: tuple[int, int],
) -> tuple[int, int]:
    """Returns the tile that reads large memory in order, where tiles like ``tile`` would read pieces of it; else
    ``tile``. ``is_plain``: no padding, windows or copies are in the way.
    """
    if lane is None or n_dim is None or not machine.unrolls:
        return tile
    registers, l2_bytes = machine.registers, machine.l2_bytes
    if rows_are_lanes and m_dim is not None:
        found = retaining_tile(nest, lane, lanes, m_dim, n_dim, tile[1], registers, l2_bytes)
    elif is_plain and n_dim == lane and lane not in inner:
        found = streaming_tile(nest, lane, lanes, m_dim, inner, tile, registers, l2_bytes)
    else:
        found = None
    return found or tile


def _copied_lane(
    nest: Nest, machine: VectorUnit, parallel: list[int], reductions: tuple[int, ...], lanes: int
) -> int | None:
    """Returns the lane loop for which tasks copy columns that are contiguous along the sums; None if that does
    not pay.
    """
    lane = choose_copied_lane(nest, parallel, reductions, lanes) if lanes <= ELEMENTWISE.transposed_lanes else None
    if lane is None or choose_n_dim(nest, parallel, lane, lanes) != lane:
        return None
    m_dim = choose_m_dim(nest, parallel, lane, lane, reductions, machine.core)
    strided = machine.strided_columns(nest, lane, lanes, m_dim)
    transposed = [a for a in nest.accesses() if lies_along_sums(a, lane, reductions)]
    return lane if all(any(a is r for r in strided) for a in transposed) else None


def _transposed(
    nest: Nest, machine: VectorUnit, parallel: list[int], lane: int, m_dim: int, *, repeats: bool
) -> Schedule:
    """Returns the schedule of an elementwise nest with vectors along ``lane``, transposed from or to memory that is
    contiguous along ``m_dim``.
    """
    lanes = max(
        1, min(machine.vector_bytes // max(_element_bytes(nest), 1), machine.max_lanes, ELEMENTWISE.transposed_lanes)
    )
    extent = nest.dims[lane].extent
    if isinstance(extent, int):
        lanes = min(lanes, 1 << (extent - 1).bit_length())
    cut = row_cut(nest, m_dim, lane, lanes, repeats=repeats)
    tile = lanes if body_size(nest) <= ELEMENTWISE.transposed_body else min(lanes, ELEMENTWISE.transposed_rows)
    ends_within = open_end(nest, lane, lanes)
    if ends_within is not None:
        n_runs: tuple[Run, ...] = (masked_run(ends_within, lanes, 1),)
    else:
        n_runs = tile_runs(tiles_along(nest, lane, lane, lanes), 1, extent % lanes)
    outer = tuple(d for d in parallel if d not in (lane, m_dim))
    runs, work = cut.runs(tile), body_size(nest)
    return Schedule(lane, lanes, False, m_dim, runs, lane, n_runs, outer, (), work, transposed=True)


def _partial_sums(
    nest: Nest, lane: int | None, lanes: int, horizontal: bool, inner: tuple[int, ...], accumulators: int
) -> int:
    """Returns the number of partial sums that hide the latency of the combining operation; 1 if the accumulators do."""
    main = nest.reduction
    if main is None or not inner or combiner(main) is None or len(main.writes) != 1 or computes_indices(main):
        return 1  # a body that computes indices has them for one iteration only
    last = lane if horizontal and lane is not None else inner[-1]
    guards = [g for r in main.reads if isinstance(r, ElementAccess) for g in r.guards]
    if any(g.index.uses(last) for g in guards) or any(last in (b.outer, b.inner) for b in nest.bounds):
        return 1
    extent = nest.dims[last].extent
    steps = expected_size(extent) // (lanes if horizontal else 1)
    wanted = SUM_ORDER.partial_sums(accumulators)
    may_pay = horizontal and may_be_long(extent, wanted * lanes, SUM_ORDER.terms_of_a_partial_sum)
    return wanted if steps >= SUM_ORDER.terms_of_a_partial_sum * wanted or may_pay else 1


def _unrolled(
    nest: Nest,
    machine: VectorUnit,
    lane: int | None,
    lanes: int,
    horizontal: bool,
    inner: tuple[int, ...],
    tile: tuple[int, int],
) -> int:
    """Returns how many iterations of the last reduction loop are unrolled, for a tile of so many rows and columns."""
    if not machine.unrolls:
        return 1
    if horizontal and lane is not None:
        return unrolled_along_lanes(nest, lane, lanes, *tile, machine.registers)
    return unrolled(nest, lane, inner, tile[0])


def _multiplies_vectors(nest: Nest, lane: int | None) -> bool:
    """Returns whether all that the reduction of ``nest`` reads are vectors along ``lane``, none one scalar for it."""
    main = nest.reduction
    reads = [] if main is None else [read for read in main.reads if isinstance(read, ElementAccess)]
    return lane is not None and len(reads) > 1 and all(read.uses(lane) for read in reads)


def _functions(nest: Nest) -> int:
    """Returns how many functions that take many instructions ``nest`` computes."""
    return sum(takes_many(op) for s in nest.stages for op in s.body.ops)


def takes_many(op: Operation) -> bool:
    """Returns whether ``op`` is a function that takes many instructions."""
    return op.name.startswith("math.") and op.name not in _SHORT


def narrow_last_column(nest: Nest, sched: Schedule, machine: VectorUnit, *, repeats: bool) -> list[Schedule]:
    """Returns ``sched``, or two schedules that do its work: a last column with at most half a vector gets narrower
    vectors.

    24 channels in blocks of 16 then cost 24 lanes instead of 32, if narrower vectors are cheaper. If they are not, only
    a column without neighbours gets them, because its loads and stores are shorter; a column with neighbours shares
    their loads of rows. The same holds for the pixels of a line, unless narrower vectors take half the time: 49 pixels
    then cost 50 lanes instead of 64.
    """
    ends = _last_column(nest, sched)
    if ends is None or sched.m_dim == sched.lane:
        return [sched]
    last, left, tile = ends
    plain = sched.n_dim == sched.lane
    cheaper = machine.two_passes if plain else not last or machine.narrow_is_cheaper
    if not left or left > tile // 2 or not cheaper:
        return [sched]
    cut = row_cut(nest, sched.m_dim, sched.lane, sched.lanes, repeats=repeats)
    if isinstance(cut.extent, Size) and not cut.overlaps:
        return [sched]
    lanes = max(2, 1 << (left - 1).bit_length())  # OpenCL C has no vectors of one lane
    mask = left if left != lanes and _n_mask(nest, sched.n_dim, sched.lane, sched.lanes) else 0
    window = sched.scalars or sched.vectors
    space = TileSpace(cut.pieces, cut.most, 1, machine.registers, sched.iterations, window=window, core=machine.core)
    tile, _ = register_block(space)
    first = last * (sched.lanes // lanes) if plain else last
    tail = replace(sched, lanes=lanes, m_runs=cut.runs(tile), n_runs=(Run(first, 1, 1, mask),))
    if not last:
        return [tail]
    space = replace(
        space,
        n_extent=min(last, max(run.tile for run in sched.n_runs)) if plain else last,
        beyond_l2=machine.beyond_l2(nest, sched.lane, sched.m_dim),
        l1_rows=machine.l1_rows(nest, sched.lane, sched.m_dim, sched.inner),
    )
    m_tile, n_tile = register_block(space)
    whole = replace(sched, m_runs=cut.runs(m_tile), n_runs=tile_runs(last, n_tile, 0))
    return [whole, tail]


def _last_column(nest: Nest, sched: Schedule) -> tuple[int, int, int] | None:
    """Returns the number of whole columns, the lanes in the column after them, and the lanes of a column; None if that
    is unknown.
    """
    for b in nest.bounds:
        if (b.outer, b.inner) == (sched.n_dim, sched.lane):
            return *divmod(b.extent, b.tile), b.tile
    if (
        sched.lane is None
        or sched.n_dim != sched.lane
        or nest.reduction is None
        or sched.horizontal
        or sched.transposed
    ):
        return None
    extent = nest.dims[sched.lane].extent
    if not isinstance(extent, int) or extent < sched.lanes:
        return None
    return *divmod(extent, sched.lanes), sched.lanes


def _element_bytes(nest: Nest) -> int:
    """Returns the bytes of the widest element in the reduction, or in all stages if there is none; lanes count such
    elements.
    """
    stages = nest.stages if nest.reduction is None else [nest.reduction]
    return max(widest_bytes(s.body) for s in stages)


def _n_mask(nest: Nest, n_dim: int | None, lane: int | None, lanes: int) -> int:
    """Returns the active lanes of the last column vector; 0 if all are.

    Columns of packed weights beyond the logical extent are computed, and dropped if the result has no memory for them.
    """
    if n_dim is None or lane is None:
        return 0
    if n_dim == lane:
        return nest.dims[lane].extent % lanes
    return next((b.extent % b.tile for b in nest.partial_tiles if (b.outer, b.inner) == (n_dim, lane)), 0)


def _unroll(nest: Nest, tiles: int) -> int:
    """Returns how many copies of a short elementwise body are unrolled together."""
    size = body_size(nest)
    return min(tiles, ELEMENTWISE.copies(size))
