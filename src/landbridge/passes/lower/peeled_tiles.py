"""Peels the partial last tile off a loop that is cut into tiles, if no vector mask stops the loop at its last element.

Packed weights have whole tiles, but the result may end inside the last one. If vectors lie along a tile, the last one
is masked. If they do not, because the epilogue has no vector form or the sums are contiguous, the whole tiles become
one nest and the elements after them another, with exact extents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from landbridge.passes.lower.access import Linear
from landbridge.passes.lower.nest import Bound, LoopDim, Nest
from landbridge.passes.lower.schedule import Schedule
from landbridge.passes.lower.simplify import simplify, substituted


def peeled_schedules(nest: Nest, choose: Callable[[Nest], Schedule], keep: int = 0) -> list[tuple[Nest, Schedule]]:
    """Returns the schedule that ``choose`` gives ``nest``, or, if it would run past a partial last tile, the schedules
    of the nests that it is peeled into.

    The first ``keep`` loops are those of loops around the nest, and are not changed.
    """
    sched = choose(nest)
    masked = sched.n_dim, sched.lane
    bound = next((b for b in nest.partial_tiles if (b.outer, b.inner) != masked), None)
    if bound is None:
        return [(nest, sched)]
    return [pair for part in peeled(nest, bound) for pair in peeled_schedules(simplify(part, keep), choose, keep)]


def peeled(nest: Nest, bound: Bound) -> list[Nest]:
    """Returns nests that together compute ``nest``: whole tiles of ``bound``, if any, and the elements left."""
    whole, left = divmod(bound.extent, bound.tile)
    bounds = [b for b in nest.bounds if b is not bound]
    parts = [_with_extents(nest, {bound.outer: whole}, bounds)] if whole else []
    at = {d: Linear(0, {d: 1}) for d in range(len(nest.dims))} | {bound.outer: Linear(whole, {})}
    last = substituted(nest, nest.dims, at, bounds)
    return [*parts, _with_extents(last, {bound.outer: 1, bound.inner: left}, bounds)]


def _with_extents(nest: Nest, extents: dict[int, int], bounds: Sequence[Bound]) -> Nest:
    dims = [LoopDim(extents.get(i, d.extent), d.reduction) for i, d in enumerate(nest.dims)]
    return replace(nest, dims=dims, bounds=list(bounds))
