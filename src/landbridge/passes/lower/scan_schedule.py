"""Schedules running folds: chooses the loop that vectors lie along, and the elements that are tasks."""

from __future__ import annotations

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.cost import ELEMENTWISE
from landbridge.passes.lower.lane_walk import Walk, walk_of
from landbridge.passes.lower.nest import Nest, body_size, widest_bytes
from landbridge.passes.lower.row_cut import open_end, tiles_along
from landbridge.passes.lower.runs import Run, dividing_tile, masked_run, tile_runs
from landbridge.passes.lower.scan import fold_of
from landbridge.passes.lower.schedule import Schedule, VectorUnit
from landbridge.sizes.size import expected_size

_ONE = (Run(0, 1, 1),)


def scan_schedule(nest: Nest, machine: VectorUnit) -> Schedule:
    """Returns the schedule of a simplified nest that is a running fold."""
    elements = [d for d, dim in enumerate(nest.dims) if not dim.reduction]
    iterations = tuple(d for d, dim in enumerate(nest.dims) if dim.reduction)
    stage = nest.stages[0]
    lanes = max(1, min(machine.vector_bytes // widest_bytes(stage.body), machine.max_lanes))
    lane = _lane_of_elements(nest, elements, lanes)
    work = body_size(nest)
    for d in iterations:
        work *= expected_size(nest.dims[d].extent)
    if lane is not None:
        extent = nest.dims[lane].extent
        if isinstance(extent, int):
            lanes = min(lanes, 1 << (extent - 1).bit_length())
        vectors = tiles_along(nest, lane, lane, lanes)
        tile = dividing_tile(vectors, min(ELEMENTWISE.vectors_of_scans, max(1, expected_size(vectors))))
        end = open_end(nest, lane, lanes)
        runs = tile_runs(vectors, tile, extent % lanes) if end is None else (masked_run(end, lanes, tile),)
        outer = tuple(d for d in elements if d != lane)
        return Schedule(lane, lanes, False, None, _ONE, lane, runs, outer, iterations, work)
    if lanes > 1 and _follows_iterations(nest, iterations, lanes):
        outer, work = tuple(elements), max(1, work // lanes)
        return Schedule(iterations[0], lanes, True, None, _ONE, None, _ONE, outer, iterations, work)
    return Schedule(None, 1, False, None, _ONE, None, _ONE, tuple(elements), iterations, work)


def _lane_of_elements(nest: Nest, elements: list[int], lanes: int) -> int | None:
    """Returns the longest loop of elements along which every operand is contiguous, or one scalar; None if there is
    none.
    """

    def lies_along(d: int) -> bool:
        reads = [walk_of(a, d) for a in nest.accesses()]
        writes = [w.index.coeff(d) for w in nest.stages[0].writes]
        return all(walk in (Walk.STAYS, Walk.ALONG) for walk in reads) and all(c == 1 for c in writes)

    candidates = [d for d in elements if lanes > 1 and lies_along(d)]
    return max(candidates, key=lambda d: expected_size(nest.dims[d].extent), default=None)


def _follows_iterations(nest: Nest, iterations: tuple[int, ...], lanes: int) -> bool:
    """Returns whether vectors may lie along the iterations."""
    stage = nest.stages[0]
    if not iterations or expected_size(nest.dims[iterations[0]].extent) < lanes or fold_of(stage) is None:
        return False
    reads = [walk_of(r, iterations[0]) for r in stage.reads if isinstance(r, ElementAccess)]
    along = walk_of(stage.writes[0], iterations[0]) is Walk.ALONG
    return along and all(walk in (Walk.STAYS, Walk.ALONG) for walk in reads)
