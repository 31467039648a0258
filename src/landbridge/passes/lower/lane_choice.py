"""Which loop of a nest its vectors lie along."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.combiners import combiner
from landbridge.passes.lower.lane_body import computes_places, counts_lanes, work_by_lane
from landbridge.passes.lower.lane_walk import Walk, lane_guards, walk_of
from landbridge.passes.lower.nest import Nest, body_size
from landbridge.sizes.size import expected_size

#: Operations of an elementwise body for which masks of padded lanes are worth making; copies are as quick without.
MASKED_BODY = 5


def choose_lane(nest: Nest, parallel: list[int], lanes: int, masks: bool) -> int | None:
    """The longest loop along which every operand is vectors, or one element for all lanes."""
    if lanes < 2:
        return None
    loops = (d for d in parallel if nest.dims[d].extent != 1 and _lies_along(nest, d) and _is_plain(nest, d))
    candidates = [d for d in loops if (work := _work_by_lane(nest, d, masks)) is not None and work[0] == 0]
    return max(candidates, key=lambda d: expected_size(nest.dims[d].extent), default=None)


def choose_other_lane(
    nest: Nest, parallel: list[int], reductions: tuple[int, ...], lanes: int, masks: bool
) -> tuple[int | None, bool]:
    """A loop along which operands have steps or padding, or are loaded lane by lane for enough that is computed, if it
    fills vectors; else a reduction loop, which is told by True; else the longest of the former."""
    if lanes < 2:
        return None, False
    tiled = {d for b in nest.bounds for d in (b.outer, b.inner)}
    several = sum(bool(lane_guards(a, d)) for a in nest.accesses() for d in parallel) > 1
    may_mask = masks and (nest.reduction is not None or several or body_size(nest) >= MASKED_BODY)

    def legal(a: ElementAccess, d: int) -> bool:
        return walk_of(a, d) is not None and (may_mask or not lane_guards(a, d))

    strided = [
        d
        for d in parallel
        if nest.dims[d].extent != 1
        and d not in tiled
        and _lies_along(nest, d)
        and all(legal(a, d) for a in nest.accesses())
        and (work := _work_by_lane(nest, d, masks)) is not None
        and work[0] <= (work[1] if isinstance(nest.dims[d].extent, int) else 0)  # of open loops it is not proved
    ]
    longest = max(strided, key=lambda d: expected_size(nest.dims[d].extent), default=None)
    if longest is not None and expected_size(nest.dims[longest].extent) >= lanes:
        return longest, False
    across = _choose_summed_lane(nest, reductions, lanes)
    return (longest, False) if across is None else (across, True)


def choose_copied_lane(nest: Nest, parallel: list[int], reductions: tuple[int, ...], lanes: int) -> int | None:
    """The longest loop along which every operand is vectors, or one element for all lanes, but for reads of the
    reduction that lie along its last loop: copies of these are vectors."""
    main = nest.reduction
    if main is None or lanes < 2 or not reductions or nest.bounds or any(computes_places(s) for s in nest.stages):
        return None
    plain = (Walk.STAYS, Walk.ALONG)

    def is_legal(d: int) -> bool:
        others = [a for a in nest.accesses() if not lies_along_sums(a, d, reductions)]
        read = {id(r) for r in main.reads}
        return (
            len(others) < len(nest.accesses())
            and all(id(a) in read for a in nest.accesses() if a not in others)
            and all(walk_of(a, d) in plain and not a.guards for a in others)
        )

    found = [d for d in parallel if nest.dims[d].extent != 1 and _lies_along(nest, d) and is_legal(d)]
    return max(found, key=lambda d: expected_size(nest.dims[d].extent), default=None)


def lies_along_sums(a: ElementAccess, lane: int, inner: Sequence[int]) -> bool:
    """Whether blocks of ``a``, of the last of the reduction loops ``inner`` and of ``lane``, can be transposed so that
    they lie along ``lane``."""
    return not a.guards and walk_of(a, lane) is None and walk_of(a, lane, inner[-1]) is Walk.TRANSPOSED


def _choose_summed_lane(nest: Nest, reductions: tuple[int, ...], lanes: int) -> int | None:
    """A reduction loop to go along by vectors, whose lanes are combined at the end."""
    reduction = nest.reduction
    if reduction is None or len(reduction.writes) != 1 or combiner(reduction) is None:
        return None
    others = nest.stages[1:]
    if any(computes_places(s) for s in others):
        return None
    outer = {b.outer for b in nest.bounds}
    main_reads = [r for r in reduction.reads if isinstance(r, ElementAccess)]
    for d in reductions:
        if (
            expected_size(nest.dims[d].extent) >= lanes
            and d not in outer
            and whole_vectors(nest, d, lanes) > 1
            and _is_plain(nest, d)
            and any(r.index.coeff(d) == 1 for r in main_reads)
            and (not computes_places(reduction) or counts_lanes(reduction, d))
        ):
            return d
    return None


def _work_by_lane(nest: Nest, lane: int, masks: bool) -> tuple[int, int] | None:
    """What bodies load lane by lane and what floats they compute; None where they allow no lanes."""
    total = 0, 0
    for s in nest.stages:
        if computes_places(s):
            work = work_by_lane(s, lane) if masks else None
            if work is None:
                return None
            total = total[0] + work[0], total[1] + work[1]
    return total


def _lies_along(nest: Nest, d: int) -> bool:
    """Whether results of neighbouring iterations of loop ``d`` are neighbours."""
    return all(
        w.index.coeff(d) == 1 for s in nest.stages for w, retained in zip(s.writes, s.stored, strict=True) if retained
    )


def _is_plain(nest: Nest, d: int) -> bool:
    """Whether every access finds neighbours along loop ``d``, or stays, without padding."""
    plain = (Walk.STAYS, Walk.ALONG)
    return all(walk_of(a, d) in plain and not lane_guards(a, d) for a in nest.accesses())


def choose_transposed(nest: Nest, parallel: list[int], lanes: int) -> tuple[int, int] | None:
    """A lane and the rows of an elementwise nest, each of whose accesses lies along the one, along the other or is the
    same for all lanes; long lanes before short ones, and those that results lie along before others."""
    if lanes < 2 or nest.reduction is not None or nest.bounds or any(computes_places(s) for s in nest.stages):
        return None
    accesses = nest.accesses()
    writes = {id(w) for s in nest.stages for w in s.writes}
    found: list[tuple[tuple[int, int, int], tuple[int, int]]] = []
    for lane, rows in permutations((d for d in parallel if nest.dims[d].extent != 1), 2):
        walks = [walk_of(a, lane, rows) for a in accesses]
        stays = any(walk is Walk.STAYS and id(a) in writes for walk, a in zip(walks, accesses, strict=True))
        padded = any(lane_guards(a, lane) for a in accesses)
        if None not in walks and Walk.TRANSPOSED in walks and not stays and not padded:
            along = sum(walk is Walk.ALONG for walk, a in zip(walks, accesses, strict=True) if id(a) in writes)
            lengths = (min(expected_size(nest.dims[d].extent), lanes) for d in (lane, rows))
            found.append(((next(lengths), along, next(lengths)), (lane, rows)))
    return max(found)[1] if found else None


def whole_vectors(nest: Nest, d: int, lanes: int) -> int:
    """At most ``lanes``, so that vectors along reduction loop ``d`` end where a padded tile's elements do."""
    return math.gcd(lanes, *(x for b in nest.bounds if b.inner == d for x in (b.tile, b.extent % b.tile)))
