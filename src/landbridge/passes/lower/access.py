"""Memory accesses of loop nests: affine maps made linear over the loops.

An affine map over a dense row-major buffer is ``const + sum(coeffs[d] * d)`` elements, plus terms that are not
linear (``floordiv``, ``mod``) kept as expressions with their stride.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from landbridge.ir.size_exprs import extent_expr
from landbridge.records import record


@record(frozen=True)
class Linear:
    """``const + sum(coeffs[d] * d) + sum(stride * expr)`` over the dims of a nest."""

    const: int
    coeffs: Mapping[int, int]
    rest: tuple[tuple[int, AffineExpr], ...] = ()

    def coeff(self, dim: int) -> int:
        """The factor of loop ``dim``."""
        return self.coeffs.get(dim, 0)

    def uses(self, dim: int) -> bool:
        """Whether the value depends on loop ``dim``."""
        return self.coeff(dim) != 0 or any(dim in e.used_dims() for _, e in self.rest)

    def nonlinear_in(self, dim: int) -> bool:
        """Whether ``dim`` stands under a floordiv or mod."""
        return any(dim in e.used_dims() for _, e in self.rest)


@record(frozen=True)
class Guard:
    """The access is to padding unless ``0 <= index < extent``."""

    index: Linear
    extent: int


@record(frozen=True)
class ElementAccess:
    """Where a nest reads or writes ``buffer``: a linear element index, and guards when it is padded.

    ``fill`` is what a guarded access reads outside its bounds.
    """

    buffer: SSAValue
    index: Linear
    element: Attribute
    guards: tuple[Guard, ...] = ()
    fill: Attribute | None = None

    @property
    def item_bytes(self) -> int:
        """Bytes of an element; 4 where its type does not say."""
        return int(getattr(self.element, "bitwidth", 32)) // 8

    def uses(self, dim: int) -> bool:
        """Whether the address depends on loop ``dim``."""
        return self.index.uses(dim)

    def varies(self, dim: int) -> bool:
        """Whether what is read or written depends on loop ``dim``: the address, or whether it is padding."""
        return self.uses(dim) or any(g.index.uses(dim) for g in self.guards)


def linearize(e: AffineExpr, scale: int = 1) -> Linear:
    """``scale * e`` with its linear terms collected."""
    if isinstance(e, AffineConstantExpr):
        return Linear(scale * e.value, {})
    if isinstance(e, AffineDimExpr):
        return Linear(0, {e.position: scale})
    if isinstance(e, AffineBinaryOpExpr):
        if e.kind == AffineBinaryOpKind.Add:
            return add(linearize(e.lhs, scale), linearize(e.rhs, scale))
        if e.kind == AffineBinaryOpKind.Mul:
            lhs, rhs = e.lhs, e.rhs
            if isinstance(lhs, AffineConstantExpr):
                lhs, rhs = rhs, lhs
            if isinstance(rhs, AffineConstantExpr):
                return linearize(lhs, scale * rhs.value)
    return Linear(0, {}, ((scale, e),))


def add(a: Linear, b: Linear) -> Linear:
    """The sum of two indices."""
    coeffs = dict(a.coeffs)
    for d, c in b.coeffs.items():
        coeffs[d] = coeffs.get(d, 0) + c
    return Linear(a.const + b.const, {d: c for d, c in coeffs.items() if c != 0}, a.rest + b.rest)


def linear_index(m: AffineMap, strides: Sequence[int]) -> Linear:
    """The element index that ``m`` reaches in a buffer where a step along each axis counts ``strides``."""
    total = Linear(0, {})
    for e, stride in zip(m.results, strides, strict=True):
        total = add(total, linearize(e, stride))
    return total


def rename(x: Linear, dims: Mapping[int, Linear]) -> Linear:
    """``x`` with every dim replaced by an index over other dims; nonlinear terms need plain renames."""
    total = Linear(x.const, {})
    for d, c in x.coeffs.items():
        total = add(total, scale(dims[d], c))
    rest = tuple((s, _substitute(e, dims)) for s, e in x.rest)
    return replace(total, rest=total.rest + rest)


def scale(x: Linear, factor: int) -> Linear:
    """``factor * x``."""
    return Linear(
        x.const * factor, {d: c * factor for d, c in x.coeffs.items()}, tuple((s * factor, e) for s, e in x.rest)
    )


def expression(x: Linear) -> AffineExpr:
    """``x`` as an affine expression."""
    total = extent_expr(x.const)
    for d, c in x.coeffs.items():
        total = total + AffineExpr.dimension(d) * extent_expr(c)
    for s, e in x.rest:
        total = total + e * extent_expr(s)
    return total


def _substitute(e: AffineExpr, dims: Mapping[int, Linear]) -> AffineExpr:
    if isinstance(e, AffineDimExpr):
        return expression(dims[e.position])
    if isinstance(e, AffineBinaryOpExpr):
        return AffineBinaryOpExpr(e.kind, _substitute(e.lhs, dims), _substitute(e.rhs, dims))
    return e


def rename_access(a: ElementAccess, dims: Mapping[int, Linear]) -> ElementAccess:
    """``a`` over other dims."""
    return replace(
        a,
        index=rename(a.index, dims),
        guards=tuple(Guard(rename(g.index, dims), g.extent) for g in a.guards),
    )
