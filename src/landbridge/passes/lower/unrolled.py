"""Chooses how many iterations of the last loop of a sum are unrolled.

Instructions that control the loop take issue slots. If two threads share a core, each has half of the 5 slots per cycle
of Ice Lake; 24 multiply-adds and their loads are 41 instructions in 12 cycles.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.between_lanes import iterations_between
from landbridge.passes.lower.combiners import combiner
from landbridge.passes.lower.cost import UNROLLING
from landbridge.passes.lower.lane_body import computes_indices
from landbridge.passes.lower.nest import Nest, Stage
from landbridge.passes.lower.rows_as_lanes import powers_of_two


def unrolled(nest: Nest, lane: int | None, inner: Sequence[int], m_tile: int) -> int:
    """Returns how many iterations of the last of the loops ``inner`` are unrolled; 1 for short loops.

    Tiles with few rows wait for memory anyway, and are unrolled only if iterations read the same vectors.
    """
    main = nest.reduction
    if main is None or not inner:
        return 1
    last = inner[-1]
    between = iterations_between(main, lane, last)
    if m_tile < UNROLLING.rows and between == 1:
        return 1
    if not _may_unroll(nest, main, last):
        return 1
    iterations = nest.dims[last].extent
    is_long = isinstance(iterations, int) and iterations >= UNROLLING.long_loop
    return UNROLLING.iterations // between * between if is_long else 1


def unrolled_in_short_loops(nest: Nest, inner: Sequence[int], m_tile: int, wanted: int) -> int:
    """Returns ``wanted``, a number of iterations of the last of the loops ``inner`` that are unrolled, or 1 where they
    may not be, where the tile has few rows, or where some iterations would be left over.
    """
    main = nest.reduction
    if main is None or not inner or m_tile < UNROLLING.rows or not _may_unroll(nest, main, inner[-1]):
        return 1
    iterations = nest.dims[inner[-1]].extent
    return wanted if isinstance(iterations, int) and iterations % wanted == 0 else 1


def unrolled_along_lanes(nest: Nest, lane: int, lanes: int, m_tile: int, n_tile: int, registers: int) -> int:
    """Returns how many vectors along ``lane``, whose lanes are summed, each row of a tile reads before the next row.

    Memory is then read in longer pieces. Tiles of 8 rows of 256 bytes, one vector of each row after the other, read
    memory at 17 GB/s, and row by row at 21 to 26 (Zen 4, one core, whose plain reads reach 26). Vectors that rows share
    must stay in registers meanwhile. Where whole rows are read at once, half of them need not: they then come from L1.
    With 4 rows, each for 4 columns, that is 7 % faster from memory, and 2 % slower from L3.
    """
    main, extent = nest.reduction, nest.dims[lane].extent
    if main is None or m_tile < 2 or not isinstance(extent, int) or not _may_unroll(nest, main, lane):
        return 1
    sums, vectors = m_tile * n_tile, extent // lanes
    if vectors * n_tile <= registers // 2 and vectors * sums <= UNROLLING.terms_of_whole_rows:
        return max(vectors, 1)
    most = min((registers - UNROLLING.other_registers - sums) // n_tile, UNROLLING.terms // sums)
    return max((n for n in powers_of_two(most) if vectors % n == 0), default=1) if most > 0 else 1


def _may_unroll(nest: Nest, main: Stage, loop: int) -> bool:
    if combiner(main) is None or len(main.writes) != 1 or computes_indices(main):
        return False  # a body that computes indices has them for one iteration only
    guards = [g for r in main.reads if isinstance(r, ElementAccess) for g in r.guards]
    return not any(g.index.uses(loop) for g in guards) and not any(loop in (b.outer, b.inner) for b in nest.bounds)
