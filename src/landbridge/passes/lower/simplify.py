"""Simplifies a nest before it is scheduled: fewer and longer loops, and no guards that always hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects import linalg

from landbridge.passes.lower.access import ElementAccess, Linear, rename, rename_access
from landbridge.passes.lower.guards import full_ranges, truth
from landbridge.passes.lower.nest import Bound, LoopDim, Nest, Stage


def simplify(nest: Nest, keep: int = 0) -> Nest:
    """Returns an equivalent nest, simplified by all rules; the first ``keep`` loops are not changed."""
    return join_loops(drop_held_guards(drop_unit_loops(nest, keep)), keep)


def drop_unit_loops(nest: Nest, keep: int = 0) -> Nest:
    """Returns ``nest`` without loops that have one iteration."""
    bounded = {d for b in nest.bounds for d in (b.outer, b.inner)}
    return _without(nest, {i for i, d in enumerate(nest.dims) if d.extent == 1 and i >= keep and i not in bounded})


def drop_held_guards(nest: Nest) -> Nest:
    """Returns ``nest`` without guards that hold in every iteration."""

    ranges = full_ranges(nest.dims)

    def clean(s: Stage) -> Stage:
        reads = (
            replace(r, guards=tuple(g for g in r.guards if not truth(g, ranges))) if isinstance(r, ElementAccess) else r
            for r in s.reads
        )
        return replace(s, reads=tuple(reads))

    return Nest(nest.dims, [clean(s) for s in nest.stages], nest.bounds)


def join_loops(nest: Nest, keep: int = 0) -> Nest:
    """Returns ``nest`` with loops joined: two loops are one if the stride of the outer is the stride of the inner times
    its extent, in every access.
    """
    while (pair := _joinable(nest, keep)) is not None:
        outer, inner = pair
        dims = list(nest.dims)
        dims[inner] = LoopDim(dims[outer].extent * dims[inner].extent, dims[inner].reduction)
        nest = _without(replace(nest, dims=dims), {outer})
    return nest


def _without(nest: Nest, gone: Collection[int]) -> Nest:
    """Returns ``nest`` without the loops ``gone``, whose indices are 0."""
    remaining = [i for i in range(len(nest.dims)) if i not in gone]
    number = {old: new for new, old in enumerate(remaining)}
    return renumbered(nest, [nest.dims[i] for i in remaining], [number.get(i) for i in range(len(nest.dims))])


def renumbered(nest: Nest, dims: list[LoopDim], number: Sequence[int | None]) -> Nest:
    """Returns ``nest`` over ``dims``; ``number`` maps each of its loops to one of these, or to None if the loop is
    dropped.
    """
    at = {i: Linear(0, {} if new is None else {new: 1}) for i, new in enumerate(number)}
    bounds = []
    for b in nest.bounds:
        outer, inner = number[b.outer], number[b.inner]
        assert outer is not None and inner is not None
        bounds.append(replace(b, outer=outer, inner=inner))
    return substituted(nest, dims, at, bounds)


def substituted(nest: Nest, dims: list[LoopDim], at: Mapping[int, Linear], bounds: list[Bound]) -> Nest:
    """Returns ``nest`` over ``dims`` and ``bounds``, each of its loop indices replaced by an index ``at`` over them."""
    stages = [
        replace(
            s,
            reads=tuple(rename_access(r, at) if isinstance(r, ElementAccess) else r for r in s.reads),
            writes=tuple(rename_access(w, at) for w in s.writes),
            dims={k: rename(v, at) for k, v in s.dims.items()},
        )
        for s in nest.stages
    ]
    return Nest(dims, stages, bounds)


def _joinable(nest: Nest, keep: int) -> tuple[int, int] | None:
    """Returns two loops that can be joined, which no guard, bound or body uses separately; None if there are none."""
    accesses = nest.accesses()
    fixed = {d for b in nest.bounds for d in (b.outer, b.inner)}
    fixed |= {d for a in accesses for g in a.guards for d in g.index.coeffs}
    fixed |= {d for s in nest.stages for x in _index_uses(s) for d in x.coeffs}
    loops = [d for d in range(keep, len(nest.dims)) if d not in fixed]
    for outer in loops:
        for inner in loops:
            if outer == inner or nest.dims[outer].reduction != nest.dims[inner].reduction:
                continue
            extent = nest.dims[inner].extent
            if all(
                a.index.coeff(outer) == a.index.coeff(inner) * extent
                and not a.index.nonlinear_in(outer)
                and not a.index.nonlinear_in(inner)
                for a in accesses
            ):
                return outer, inner
    return None


def _index_uses(stage: Stage) -> list[Linear]:
    """Returns the loop indices that the body itself reads."""
    return [stage.dims[op.dim.value.data] for op in stage.body.ops if isinstance(op, linalg.ops.IndexOp)]
