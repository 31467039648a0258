"""Accesses of buffers by loops: as strided views if indices are linear, else as arrays of indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from landbridge.errors import CompileError, UnsupportedOperatorError
from landbridge.records import record

Array: TypeAlias = np.ndarray[Any, Any]
#: The first iteration of each loop, and the one after the last.
Ranges: TypeAlias = Sequence[tuple[int, int]]


@record(frozen=True)
class _Linear:
    """A linear index: ``constant`` plus each loop's counter times its coefficient; zero coefficients are left out."""

    constant: int
    coefficients: dict[int, int]

    def times(self, factor: int) -> _Linear:
        return _Linear(self.constant * factor, {d: c * factor for d, c in self.coefficients.items()})

    def plus(self, other: _Linear) -> _Linear:
        total = dict(self.coefficients)
        for d, c in other.coefficients.items():
            total[d] = total.get(d, 0) + c
        return _Linear(self.constant + other.constant, total)


def _linear(expr: AffineExpr) -> _Linear | None:
    if isinstance(expr, AffineDimExpr):
        return _Linear(0, {expr.position: 1})
    if isinstance(expr, AffineConstantExpr):
        return _Linear(number(expr.value), {})
    if isinstance(expr, AffineBinaryOpExpr):
        a, b = _linear(expr.lhs), _linear(expr.rhs)
        if a is None or b is None:
            return None
        if expr.kind is AffineBinaryOpKind.Add:
            return a.plus(b)
        if expr.kind is AffineBinaryOpKind.Mul and not (a.coefficients and b.coefficients):
            return b.times(a.constant) if b.coefficients else a.times(b.constant)
    return None


def number(extent: object) -> int:
    """Returns ``extent`` as a number; raises UnsupportedOperatorError if it is known only at run time."""
    if not isinstance(extent, int):
        raise UnsupportedOperatorError(f"{extent} is known when the model runs, and is wanted at compile time")
    return extent


class OperandAccess:
    """The indices of one operand of a stage, for its ``loops``."""

    def __init__(self, exprs: Sequence[AffineExpr], loops: int) -> None:
        self._exprs, self._loops = exprs, loops
        linear = [_linear(e) for e in exprs]
        self._linear = None if None in linear else [e for e in linear if e is not None]

    @property
    def loops(self) -> frozenset[int]:
        """Returns the loops whose counters the indices depend on."""
        return frozenset(d for e in self._exprs for d in e.used_dims())

    @property
    def is_linear(self) -> bool:
        """Returns whether the elements are a view of the buffer."""
        return self._linear is not None

    def read(self, buffer: Array, ranges: Ranges) -> Array:
        """Returns the elements for all iterations in ``ranges``, one axis per loop, of extent 1 for loops that do not
        matter."""
        if self._linear is not None:
            return self.view(buffer, ranges)
        return np.asarray(buffer[self._indices(buffer, ranges)])

    def write(self, buffer: Array, ranges: Ranges, values: Array) -> None:
        """Store ``values``, which broadcast to the loops, in the elements for all iterations in ``ranges``."""
        if self._linear is not None:
            target = self.view(buffer, ranges, writeable=True)
            np.copyto(target, values, casting="no")
            return
        where = self._indices(buffer, ranges)
        shape = np.broadcast_shapes(*(i.shape for i in where))
        buffer[where] = np.broadcast_to(values, shape)

    def view(self, buffer: Array, ranges: Ranges, writeable: bool = False) -> Array:
        """Returns the elements of linear indices, without a copy."""
        assert self._linear is not None
        strides, first = [0] * self._loops, []
        for axis, (e, extent, stride) in enumerate(zip(self._linear, buffer.shape, buffer.strides, strict=True)):
            ends = [sorted((c * ranges[d][0], c * (ranges[d][1] - 1))) for d, c in e.coefficients.items()]
            low, high = (e.constant + sum(end[i] for end in ends) for i in (0, 1))
            if not 0 <= low <= high < extent:
                raise CompileError(f"indices {low} to {high} of axis {axis}, which has {extent} elements")
            first.append(e.constant + sum(c * ranges[d][0] for d, c in e.coefficients.items()))
            for d, c in e.coefficients.items():
                strides[d] += c * stride
        shape = [b - a if s else 1 for (a, b), s in zip(ranges, strides, strict=True)]
        rest: tuple[Any, ...] = (..., *(slice(i, None) for i in first))  # a view also of a buffer without axes
        return np.lib.stride_tricks.as_strided(buffer[rest], shape, strides, writeable=writeable)

    def _indices(self, buffer: Array, ranges: Ranges) -> tuple[Array, ...]:
        counters = counters_of(ranges)
        found = tuple(np.asarray(_evaluated(e, counters)) for e in self._exprs)
        check_inside(found, buffer.shape)
        return found


def counters_of(ranges: Ranges) -> list[Array]:
    """Returns the counter of each loop, an array that broadcasts along the others."""
    rank = len(ranges)
    return [np.arange(a, b).reshape([-1 if i == d else 1 for i in range(rank)]) for d, (a, b) in enumerate(ranges)]


def check_inside(indices: Sequence[Array], shape: Sequence[int]) -> None:
    """Raises CompileError if an index lies outside of ``shape``; numpy would count some from the end."""
    for axis, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        index = np.asarray(index)
        if index.size and not (index.min() >= 0 and index.max() < extent):
            raise CompileError(f"indices {index.min()} to {index.max()} of axis {axis}, which has {extent} elements")


def _evaluated(expr: AffineExpr, counters: Sequence[Array]) -> Array | int:
    if isinstance(expr, AffineConstantExpr):
        return number(expr.value)
    if isinstance(expr, AffineDimExpr):
        return counters[expr.position]
    assert isinstance(expr, AffineBinaryOpExpr)
    a, b = _evaluated(expr.lhs, counters), _evaluated(expr.rhs, counters)
    match expr.kind:
        case AffineBinaryOpKind.Add:
            return a + b
        case AffineBinaryOpKind.Mul:
            return a * b
        case AffineBinaryOpKind.FloorDiv:
            return a // b
        case AffineBinaryOpKind.CeilDiv:
            return -(-a // b)
        case AffineBinaryOpKind.Mod:
            return a % b
