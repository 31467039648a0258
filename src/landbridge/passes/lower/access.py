"""Memory accesses of loop nests, as affine maps linearized over the loops.

An affine map over a dense row-major buffer is ``const + sum(coeffs[d] * d)`` elements. Terms that are not linear
(``floordiv``, ``mod``) are kept as expressions, each with its stride.
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
    """A linear index ``const + sum(coeffs[d] * d) + sum(stride * expr)`` over the dims of a nest."""

    const: int
    coeffs: Mapping[int, int]
    rest: tuple[tuple[int, AffineExpr], ...] = ()

    def coeff(self, dim: int) -> int:
        """Returns the factor of loop ``dim``."""
        return self.coeffs.get(dim, 0)

    def uses(self, dim: int) -> bool:
        """Returns whether the value depends on loop ``dim``."""
        return self.coeff(dim) != 0 or any(dim in e.used_dims() for _, e in self.rest)

    def nonlinear_in(self, dim: int) -> bool:
        """Returns whether ``dim`` is an operand of a floordiv or mod."""
        return any(dim in e.used_dims() for _, e in self.rest)


@record(frozen=True)
class Guard:
    """A test for padding: the access is to padding unless ``0 <= index < extent``."""

    index: Linear
    extent: int


@record(frozen=True, eq=False)
class ElementAccess:
    """The element of ``buffer`` that a nest reads or writes: a linear index, and guards if the buffer is padded.

    Compared by identity: two stages that read one element may have to load it twice.

    ``fill`` is the value of a read for which a guard fails.
    """

    buffer: SSAValue
    index: Linear
    element: Attribute
    guards: tuple[Guard, ...] = ()
    fill: Attribute | None = None

    @property
    def item_bytes(self) -> int:
        """Returns the bytes of an element; 4 if its type does not define them."""
        return int(getattr(self.element, "bitwidth", 32)) // 8

    def uses(self, dim: int) -> bool:
        """Returns whether the address depends on loop ``dim``."""
        return self.index.uses(dim)

    def varies(self, dim: int) -> bool:
        """Returns whether the element depends on loop ``dim``: by its address or by a guard."""
        return self.uses(dim) or any(g.index.uses(dim) for g in self.guards)


def linearize(e: AffineExpr, scale: int = 1) -> Linear:
    """Returns ``e`` times ``scale`` as a Linear: equal dims are added up.

    Subexpressions that are not linear (floordiv, mod, products of dims) go to ``rest``, each with its factor.
    """
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
    """Returns the sum of two indices."""
    coeffs = dict(a.coeffs)
    for d, c in b.coeffs.items():
        coeffs[d] = coeffs.get(d, 0) + c
    return Linear(a.const + b.const, {d: c for d, c in coeffs.items() if c != 0}, a.rest + b.rest)


def linear_index(m: AffineMap, strides: Sequence[int]) -> Linear:
    """Returns the element index that ``m`` computes for a buffer with ``strides``, in elements, one per axis."""
    total = Linear(0, {})
    for e, stride in zip(m.results, strides, strict=True):
        total = add(total, linearize(e, stride))
    return total


def rename(x: Linear, dims: Mapping[int, Linear]) -> Linear:
    """Returns ``x`` with each dim ``d`` replaced by ``dims[d]``.

    Every dim that ``x`` uses must be in ``dims``. Dims in ``rest`` are replaced inside the floordiv or mod.
    """
    total = Linear(x.const, {})
    for d, c in x.coeffs.items():
        total = add(total, scale(dims[d], c))
    rest = tuple((s, _substitute(e, dims)) for s, e in x.rest)
    return replace(total, rest=total.rest + rest)


def scale(x: Linear, factor: int) -> Linear:
    """Returns ``factor * x``."""
    return Linear(
        x.const * factor, {d: c * factor for d, c in x.coeffs.items()}, tuple((s * factor, e) for s, e in x.rest)
    )


def expression(x: Linear) -> AffineExpr:
    """Returns ``x`` as an affine expression."""
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
    """Returns ``a`` with each dim ``d`` of its index and guards replaced by ``dims[d]``."""
    return replace(
        a,
        index=rename(a.index, dims),
        guards=tuple(Guard(rename(g.index, dims), g.extent) for g in a.guards),
    )
