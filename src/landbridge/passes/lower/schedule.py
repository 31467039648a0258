"""Schedule: how a nest runs on a CPU; VectorUnit: the properties of a target that schedules depend on.

A register tile has ``rows x columns`` accumulators (M and N of a product). ``n_dim`` are vectors along the lane loop,
or along a loop that reads other weights; each row uses each of these vectors again. The tile must fit the vector
registers of the target: the accumulators, one vector per column, and one broadcast (Goto and van de Geijn, "Anatomy of
High-Performance Matrix Multiplication", 2008, section 6).
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.cached_columns import MANY, beyond_l2_share, l1_columns
from landbridge.passes.lower.cost import REGISTER_TILE
from landbridge.passes.lower.l1_rows import l1_rows
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.strided_columns import strided_columns
from landbridge.passes.lower.windows import SharedWindow
from landbridge.records import record
from landbridge.targets.machine import CpuCore


@record(frozen=True)
class VectorUnit:
    """The properties of a target's vectors and caches that schedules depend on.

    ``vector_bytes`` is the width of a vector, ``registers`` the number of vector registers, and ``max_lanes`` the most
    lanes of a vector of any element type. ``by_lane``: one instruction multiplies a vector by one lane of another, and
    a scalar in memory must be loaded first; otherwise it is a memory operand. ``masks``: a load may be masked.
    ``l1_bytes`` is the size of L1, ``l2_bytes`` that of the caches of one core; 0 if unknown. ``prefetches``: prefetch
    instructions pay. ``narrow_is_cheaper``: multiplying vectors of half the width may take less time; ``two_passes``:
    it is known to take half. ``unrolls``: long loops are unrolled. ``sums_in_factors``: each sum of products of two
    vectors takes two registers. ``core``: its pipes and caches, from the table of CPUs. ``unrolled``: how many
    iterations of short loops are unrolled. ``tile``: the rows and columns of the tile that was measured to be the
    fastest, if any.
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
    unrolled: int = 1
    tile: tuple[int, int] | None = None

    def registers_of(self, nest: Nest, lane: int | None) -> int:
        """Returns the registers for the sums of ``nest`` and what they are computed from."""
        return self.registers // 2 if self.sums_in_factors and multiplies_vectors(nest, lane) else self.registers

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
    together, so that they share loads: scalars for all lanes are lanes of one vector, and rows read the elements of one
    ``window``. ``unrolled`` iterations of the last reduction loop are in its body, each with loads of its own.

    ``transposed``: accesses that are contiguous along the rows are transposed in registers. ``copied``: columns are
    contiguous along the sums, and tasks transpose them when they copy them. ``prefetches``: vectors that all rows share
    are prefetched. ``streams``: they may be prefetched into L2 instead. ``prefetches_m``: L1 has capacity for the
    scalars of the next tile of rows too, which may be prefetched. ``rows_are_lanes``: the lanes of stages after a sum
    over lanes are the rows of a tile. ``retained``: reads of columns that stay in registers while a task goes from one
    tile of rows to the next. ``candidates``: the rows and columns of the tiles that this one was chosen from, itself
    first, with the predicted cycles of the nest.
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
    window: SharedWindow | None = None
    copied: bool = False
    prefetches: bool = False
    prefetches_m: bool = False
    streams: bool = False
    unrolled: int = 1
    rows_are_lanes: bool = False
    retained: tuple[ElementAccess, ...] = ()
    candidates: tuple[tuple[tuple[int, int], float], ...] = ()


def multiplies_vectors(nest: Nest, lane: int | None) -> bool:
    """Returns whether all that the reduction of ``nest`` reads are vectors along ``lane``, none one scalar for it."""
    main = nest.reduction
    reads = [] if main is None else [read for read in main.reads if isinstance(read, ElementAccess)]
    return lane is not None and len(reads) > 1 and all(read.uses(lane) for read in reads)
