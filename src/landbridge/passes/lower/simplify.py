"""Make a nest smaller before it is scheduled: no unit loops, no guards that always hold, fewer and longer loops."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import linalg

from landbridge.passes.lower.access import Access, Guard, Linear, rename, rename_access
from landbridge.passes.lower.nest import Bound, Dim, Nest, Stage


def simplify(nest: Nest, keep: int = 0) -> Nest:
    """An equal nest with unit loops dropped and loops collapsed; the first ``keep`` dims are left alone."""
    nest = _drop_guards(_drop_unit_dims(nest, keep))
    while (pair := _collapsible(nest, keep)) is not None:
        nest = _collapse(nest, *pair)
    return nest


def index_range(x: Linear, dims: list[Dim]) -> tuple[int, int] | None:
    """Smallest and largest value of a linear index; None when it has nonlinear terms."""
    if x.rest:
        return None
    low = x.const + sum(c * (dims[d].extent - 1) for d, c in x.coeffs.items() if c < 0)
    high = x.const + sum(c * (dims[d].extent - 1) for d, c in x.coeffs.items() if c > 0)
    return low, high


def _rewrite(nest: Nest, dims: list[Dim], mapping: dict[int, Linear], bounds: list[Bound]) -> Nest:
    stages = []
    for s in nest.stages:
        stages.append(
            replace(
                s,
                reads=tuple(rename_access(r, mapping) if isinstance(r, Access) else r for r in s.reads),
                writes=tuple(rename_access(w, mapping) for w in s.writes),
                dims={k: rename(v, mapping) for k, v in s.dims.items()},
            )
        )
    return Nest(dims, stages, bounds)


def _drop_unit_dims(nest: Nest, keep: int) -> Nest:
    mapping: dict[int, Linear] = {}
    dims: list[Dim] = []
    bounded = {d for b in nest.bounds for d in (b.outer, b.inner)}
    number: dict[int, int] = {}
    for i, d in enumerate(nest.dims):
        if d.extent == 1 and i >= keep and i not in bounded:
            mapping[i] = Linear(0, {})
        else:
            number[i] = len(dims)
            mapping[i] = Linear(0, {len(dims): 1})
            dims.append(d)
    bounds = [Bound(number[b.outer], number[b.inner], b.tile, b.extent) for b in nest.bounds]
    return _rewrite(nest, dims, mapping, bounds)


def _drop_guards(nest: Nest) -> Nest:
    def needed(g: Guard) -> bool:
        span = index_range(g.index, nest.dims)
        return span is None or span[0] < 0 or span[1] >= g.extent

    def clean(s: Stage) -> Stage:
        return replace(
            s,
            reads=tuple(
                replace(r, guards=tuple(g for g in r.guards if needed(g))) if isinstance(r, Access) else r
                for r in s.reads
            ),
        )

    return Nest(nest.dims, [clean(s) for s in nest.stages], nest.bounds)


def _collapsible(nest: Nest, keep: int) -> tuple[int, int] | None:
    """Two loops that every access walks as one: stride of the outer = stride of the inner x its bound."""
    fixed = {d for b in nest.bounds for d in (b.outer, b.inner)}
    accesses = nest.accesses()
    used = [d for s in nest.stages for d in _index_uses(s)]
    for a in accesses:
        for g in a.guards:
            fixed |= set(g.index.coeffs)
    for x in used:
        fixed |= set(x.coeffs)
    for outer in range(keep, len(nest.dims)):
        for inner in range(keep, len(nest.dims)):
            if outer == inner or outer in fixed or inner in fixed:
                continue
            if nest.dims[outer].reduction != nest.dims[inner].reduction:
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
    """Loop indices that the body itself reads."""
    return [stage.dims[op.dim.value.data] for op in stage.body.ops if isinstance(op, linalg.ops.IndexOp)]


def _collapse(nest: Nest, outer: int, inner: int) -> Nest:
    extent = nest.dims[inner].extent
    merged = Dim(nest.dims[outer].extent * extent, nest.dims[outer].reduction)
    mapping: dict[int, Linear] = {}
    dims: list[Dim] = []
    number: dict[int, int] = {}
    for i, d in enumerate(nest.dims):
        if i == outer:
            continue
        number[i] = len(dims)
        mapping[i] = Linear(0, {len(dims): 1})
        dims.append(merged if i == inner else d)
    # Strides of the merged loop are the inner's; the outer's share is inner's stride x extent x 0.
    mapping[outer] = Linear(0, {})
    bounds = [Bound(number[b.outer], number[b.inner], b.tile, b.extent) for b in nest.bounds]
    return _rewrite(nest, dims, mapping, bounds)
