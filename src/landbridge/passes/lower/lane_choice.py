"""Chooses the loop of a nest that its vectors lie along."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.combiners import combiner
from landbridge.passes.lower.cost import ELEMENTWISE
from landbridge.passes.lower.lane_body import computes_indices, counts_lanes, work_by_lane
from landbridge.passes.lower.lane_walk import Walk, lane_guards, walk_of
from landbridge.passes.lower.nest import Nest, body_size
from landbridge.sizes.size import Extent, Size, at_least, expected_size


def choose_lane(nest: Nest, parallel: list[int], lanes: int, masks: bool) -> int | None:
    """Returns the longest loop along which every operand is contiguous, or one element for all lanes; None if there is
    none.
    """
    if lanes < 2:
        return None
    loops = (d for d in parallel if nest.dims[d].extent != 1 and _lies_along(nest, d) and _is_plain(nest, d))
    candidates = [d for d in loops if (work := _work_by_lane(nest, d, masks)) is not None and work[0] == 0]
    return max(candidates, key=lambda d: expected_size(nest.dims[d].extent), default=None)


def choose_other_lane(
    nest: Nest, parallel: list[int], reductions: tuple[int, ...], lanes: int, masks: bool
) -> tuple[int | None, bool]:
    """Returns a loop for vectors if no operand allows the simple case, and whether its lanes are summed; None if there
    is none.

    In order of preference: a loop that fills vectors although operands are strided, padded or loaded lane by lane,
    provided that enough is computed; a reduction loop, whose lanes are summed (True); the longest of the loops of the
    first kind.
    """
    if lanes < 2:
        return None, False
    tiled = {d for b in nest.bounds for d in (b.outer, b.inner)}
    several = sum(bool(lane_guards(a, d)) for a in nest.accesses() for d in parallel) > 1
    may_mask = masks and (nest.reduction is not None or several or body_size(nest) >= ELEMENTWISE.masked_body)

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
        # the accesses of single lanes are not proved for open loops
        and work[0] <= (work[1] if isinstance(nest.dims[d].extent, int) else 0)
    ]
    longest = max(strided, key=lambda d: expected_size(nest.dims[d].extent), default=None)
    if longest is not None and expected_size(nest.dims[longest].extent) >= lanes:
        return longest, False
    across = _choose_summed_lane(nest, reductions, lanes, may_be_short=longest is None)
    return (longest, False) if across is None else (across, True)


def choose_copied_lane(nest: Nest, parallel: list[int], reductions: tuple[int, ...], lanes: int) -> int | None:
    """Returns the longest loop along which all operands would be contiguous, or one element, if tasks copied some of
    them.

    Copied are reads of the reduction that are contiguous along its last loop. Returns None if no loop is like that.
    """
    main = nest.reduction
    if main is None or lanes < 2 or not reductions or nest.bounds or any(computes_indices(s) for s in nest.stages):
        return None
    plain = (Walk.STAYS, Walk.ALONG)

    def is_legal(d: int) -> bool:
        others = [a for a in nest.accesses() if not lies_along_sums(a, d, reductions)]
        return (
            len(others) < len(nest.accesses())
            and all(a in main.reads for a in nest.accesses() if a not in others)
            and all(walk_of(a, d) in plain and not a.guards for a in others)
        )

    found = [d for d in parallel if nest.dims[d].extent != 1 and _lies_along(nest, d) and is_legal(d)]
    return max(found, key=lambda d: expected_size(nest.dims[d].extent), default=None)


def lies_along_sums(a: ElementAccess, lane: int, inner: Sequence[int]) -> bool:
    """Returns whether ``a`` is contiguous along the last of the reduction loops ``inner``, so that a copy can transpose
    it to ``lane``.
    """
    return not a.guards and walk_of(a, lane) is None and walk_of(a, lane, inner[-1]) is Walk.TRANSPOSED


def _choose_summed_lane(
    nest: Nest, reductions: tuple[int, ...], lanes: int, *, may_be_short: bool = False
) -> int | None:
    """Returns a reduction loop for vectors, whose lanes are combined at the end; None if there is none.

    ``may_be_short``: there is no other loop for vectors, so that an open loop needs only to be long in some runs. A
    short one then costs a few cycles more than without vectors, and a long one a tenth.
    """
    reduction = nest.reduction
    if reduction is None or len(reduction.writes) != 1 or combiner(reduction) is None:
        return None
    others = nest.stages[1:]
    if any(computes_indices(s) for s in others):
        return None
    outer = {b.outer for b in nest.bounds}
    main_reads = [r for r in reduction.reads if isinstance(r, ElementAccess)]
    for d in reductions:
        if (
            (expected_size(nest.dims[d].extent) >= lanes or (may_be_short and may_be_long(nest.dims[d].extent, lanes)))
            and d not in outer
            and whole_vectors(nest, d, lanes) > 1
            and _is_plain(nest, d)
            and any(r.index.coeff(d) == 1 for r in main_reads)
            and (not computes_indices(reduction) or counts_lanes(reduction, d))
        ):
            return d
    return None


def may_be_long(extent: Extent, lanes: int, several: int = ELEMENTWISE.vectors_of_long_loops) -> bool:
    """Returns whether ``extent`` is open, without a declared size, and may exceed ``several`` vectors of ``lanes``."""
    if not isinstance(extent, Size) or any(s.expected is not None for s in extent.symbols.values()):
        return False
    return not at_least(several * lanes, extent)


def _work_by_lane(nest: Nest, lane: int, masks: bool) -> tuple[int, int] | None:
    """Returns how many values bodies load lane by lane, and how many floats they compute; None if they allow no
    lanes.
    """
    total = 0, 0
    for s in nest.stages:
        if computes_indices(s):
            work = work_by_lane(s, lane) if masks else None
            if work is None:
                return None
            total = total[0] + work[0], total[1] + work[1]
    return total


def _lies_along(nest: Nest, d: int) -> bool:
    """Returns whether neighbouring iterations of loop ``d`` write neighbouring elements of every result."""
    return all(
        w.index.coeff(d) == 1 for s in nest.stages for w, stored in zip(s.writes, s.stored, strict=True) if stored
    )


def _is_plain(nest: Nest, d: int) -> bool:
    """Returns whether every access along loop ``d`` is contiguous or one element, without padding."""
    plain = (Walk.STAYS, Walk.ALONG)
    return all(walk_of(a, d) in plain and not lane_guards(a, d) for a in nest.accesses())


def choose_transposed(nest: Nest, parallel: list[int], lanes: int) -> tuple[int, int] | None:
    """Returns the loops for lanes and rows of an elementwise nest whose vectors are transposed in registers; None if
    there are none.

    Each access must be contiguous along one of the two, or be the same element for all lanes. Long lane loops are
    preferred, then those along which results are contiguous.
    """
    if lanes < 2 or nest.reduction is not None or nest.bounds or any(computes_indices(s) for s in nest.stages):
        return None
    accesses = nest.accesses()
    writes = {w for s in nest.stages for w in s.writes}
    found: list[tuple[tuple[int, int, int], tuple[int, int]]] = []
    for lane, m_dim in permutations((d for d in parallel if nest.dims[d].extent != 1), 2):
        walks = [walk_of(a, lane, m_dim) for a in accesses]
        stays = any(walk is Walk.STAYS and a in writes for walk, a in zip(walks, accesses, strict=True))
        padded = any(lane_guards(a, lane) for a in accesses)
        if None not in walks and Walk.TRANSPOSED in walks and not stays and not padded:
            along = sum(walk is Walk.ALONG for walk, a in zip(walks, accesses, strict=True) if a in writes)
            lengths = (min(expected_size(nest.dims[d].extent), lanes) for d in (lane, m_dim))
            found.append(((next(lengths), along, next(lengths)), (lane, m_dim)))
    return max(found)[1] if found else None


def whole_vectors(nest: Nest, d: int, lanes: int) -> int:
    """Returns a vector length of at most ``lanes`` that divides the elements of every tile along reduction loop
    ``d``.
    """
    return math.gcd(lanes, *(x for b in nest.bounds if b.inner == d for x in (b.tile, b.extent % b.tile)))
