"""Chooses the loops of a nest that form the rows (M) and columns (N) of its register tiles."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.vector_window import vector_window
from landbridge.sizes.size import Extent, expected_size
from landbridge.targets.machine import CpuCore


def choose_n_dim(nest: Nest, parallel: list[int], lane: int | None, lanes: int) -> int | None:
    """Returns the loop for the columns of a tile: along it other weight vectors are read, but the same broadcast
    operand.
    """
    if lane is None:
        return None
    reduction = nest.reduction
    assert reduction is not None
    reads = [r for r in reduction.reads if isinstance(r, ElementAccess)]
    shared = [r for r in reads if not r.uses(lane)]
    if nest.dims[lane].extent not in (lanes, lanes // 2, lanes // 4, lanes // 8):
        return lane
    if not shared:
        return None
    for d in parallel:
        if d != lane and any(not r.uses(d) for r in shared) and all(r.uses(d) for r in reads if r.uses(lane)):
            return d
    return None


def choose_other_n_dim(nest: Nest, parallel: list[int], lane: int, m_dim: int | None) -> int | None:
    """Returns the column loop for nests whose lanes are summed, the longest if there are several; None if there is
    none.

    Iterations of this loop share vectors that iterations of ``m_dim`` do not share, and the reverse. An example is a
    matrix product in which the summed axis is contiguous in both operands.
    """
    if nest.reduction is None or m_dim is None or nest.bounds:
        return None
    reads = [r for r in nest.reduction.reads if isinstance(r, ElementAccess) and r.uses(lane)]
    found = [
        d
        for d in parallel
        if d != m_dim
        and any(r.uses(m_dim) and not r.varies(d) for r in reads)
        and any(r.uses(d) and not r.varies(m_dim) for r in reads)
    ]
    return max(found, key=lambda d: expected_size(nest.dims[d].extent), default=None)


def shares_vectors(nest: Nest, lane: int | None, m_dim: int) -> bool:
    """Returns whether all iterations of ``m_dim`` read one and the same vector along ``lane``."""
    reduction = nest.reduction
    if reduction is None or lane is None:
        return True
    reads = [r for r in reduction.reads if isinstance(r, ElementAccess)]
    return any(r.uses(lane) and not r.uses(m_dim) for r in reads)


def choose_m_dim(
    nest: Nest, parallel: list[int], lane: int | None, n_dim: int | None, window: Sequence[int], core: CpuCore
) -> int | None:
    """Returns the loop for the rows of a tile; None if there is none.

    It is the loop with the smallest stride in the result, preferably one whose iterations reuse the vectors of columns.
    If such a loop is too short to hide the latency of additions, loops whose rows share vectors in one of the reduction
    loops ``window`` are preferred.
    """
    last = nest.stages[-1]
    write = last.writes[0]
    found = [
        d for d in parallel if d not in (lane, n_dim) and write.index.coeff(d) != 0 and not write.index.nonlinear_in(d)
    ]
    found.sort(key=lambda d: (not shares_vectors(nest, lane, d), abs(expected_size(write.index.coeff(d)))))
    if found and not (shares_vectors(nest, lane, found[0]) and _hides_latency(nest.dims[found[0]].extent, core)):
        found.sort(key=lambda d: vector_window(nest, lane, d, window) is None)
    return found[0] if found else None


def _hides_latency(m_extent: Extent, core: CpuCore) -> bool:
    return expected_size(m_extent) >= core.multiply_adds_in_flight


def last_column_lanes(nest: Nest, n_dim: int | None, lane: int | None, lanes: int) -> int:
    """Returns the active lanes of the last column vector; 0 if all are.

    Columns of packed weights beyond the logical extent are computed, and dropped if the result has no memory for them.
    """
    if n_dim is None or lane is None:
        return 0
    if n_dim == lane:
        return nest.dims[lane].extent % lanes
    return next((b.extent % b.tile for b in nest.partial_tiles if (b.outer, b.inner) == (n_dim, lane)), 0)
