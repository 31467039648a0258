"""Chooses the loops of a nest that vectors, rows and columns of its tiles lie along, before the size of the tiles."""

from __future__ import annotations

from dataclasses import replace

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.block_loops import (
    choose_m_dim,
    choose_n_dim,
    choose_other_n_dim,
    shares_vectors,
)
from landbridge.passes.lower.cost import ELEMENTWISE
from landbridge.passes.lower.lane_choice import (
    choose_copied_lane,
    choose_other_lane,
    lies_along_sums,
    whole_vectors,
)
from landbridge.passes.lower.lane_walk import lane_guards
from landbridge.passes.lower.nest import Nest, widest_bytes
from landbridge.passes.lower.row_cut import RowCut, row_cut, tiles_along
from landbridge.passes.lower.row_windows import row_window
from landbridge.passes.lower.rows_as_lanes import rows_may_be_lanes
from landbridge.passes.lower.schedule import VectorUnit
from landbridge.passes.lower.windows import SharedWindow, grouped_iterations, scalar_window, vector_window
from landbridge.records import record
from landbridge.sizes.size import Extent, expected_size


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


def vector_loop(
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
    lanes, horizontal = most_lanes(nest, machine), False
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


def tile_loops(
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
        lanes = shortened(nest.dims[lane].extent, along.lanes)
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


def shortened(extent: Extent, lanes: int) -> int:
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


def most_lanes(nest: Nest, machine: VectorUnit, most: int | None = None) -> int:
    """Returns how many elements of ``nest`` a vector holds, at most ``most``."""
    lanes = min(machine.vector_bytes // max(element_bytes(nest), 1), machine.max_lanes)
    return max(1, lanes if most is None else min(lanes, most))


def element_bytes(nest: Nest) -> int:
    """Returns the bytes of the widest element in the reduction, or in all stages if there is none; lanes count such
    elements.
    """
    stages = nest.stages if nest.reduction is None else [nest.reduction]
    return max(widest_bytes(s.body) for s in stages)
