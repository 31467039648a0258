"""Formulas in f64 that numpy evaluates at import where all extents are known, and a kernel where some are open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import LARGEST_CONSTANT, check_size
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.sizes.size import Extent, Size


class Formulas(Protocol):
    """The functions that a formula needs besides Python's operators; its numbers are arrays, or values of a kernel."""

    def number(self, value: Extent | float) -> Any:
        """Returns ``value``, in f64."""

    def floor(self, x: Any) -> Any:
        """Rounds down."""

    def ceil(self, x: Any) -> Any:
        """Rounds up."""

    def within(self, x: Any, low: Any, high: Any) -> Any:
        """Clamps ``x`` to ``low`` and ``high``."""

    def absolute(self, x: Any) -> Any:
        """Returns the absolute value."""

    def chosen(self, condition: Any, a: Any, b: Any) -> Any:
        """Returns ``a`` where ``condition``, else ``b``."""


def table(
    c: OpContext, name: str, shape: Sequence[Extent], formula: Callable[..., Any], dtype: str, *others: Extent
) -> Operand:
    """Makes a tensor of ``shape`` whose element at (i, j, ...) is ``formula(f, i, j, ...)``: an array unless that, or
    one of ``others``, which the formula uses, is open.
    """
    if any(isinstance(extent, Size) for extent in (*shape, *others)):

        def body(s: ScalarBuilder, _: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
            exact = s.uncontracted()
            places = [exact.cast(exact.cast(location, "int64"), "float64") for location in at]
            return exact.cast(formula(_InKernel(exact), *places), dtype)

        return c.compute(name, [], shape, body, dtype)
    extents = [int(extent) for extent in shape]
    check_size(tuple(extents), "float64", LARGEST_CONSTANT)
    places = np.meshgrid(*(np.arange(e, dtype=np.float64) for e in extents), indexing="ij", sparse=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.broadcast_to(formula(_OnArrays(), *places), extents)
    return np.ascontiguousarray(values).astype(numpy_dtype(dtype))


class _OnArrays:
    def number(self, value: Extent | float) -> Any:
        return np.float64(value)

    def floor(self, x: Any) -> Any:
        return np.floor(x)

    def ceil(self, x: Any) -> Any:
        return np.ceil(x)

    def within(self, x: Any, low: Any, high: Any) -> Any:
        return np.clip(x, low, high)

    def absolute(self, x: Any) -> Any:
        return np.abs(x)

    def chosen(self, condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, a, b)


class _InKernel:
    def __init__(self, s: ScalarBuilder) -> None:
        self._s = s

    def number(self, value: Extent | float) -> Any:
        return self._s.const(value if isinstance(value, Size) else float(value), "float64")

    def floor(self, x: Value) -> Value:
        return self._s.math("floor", x)

    def ceil(self, x: Value) -> Value:
        return self._s.math("ceil", x)

    def within(self, x: Value, low: Any, high: Any) -> Value:
        return self._s.minimum(self._s.maximum(x, low), high)

    def absolute(self, x: Value) -> Value:
        return self._s.math("abs", x)

    def chosen(self, condition: Value, a: Any, b: Any) -> Value:
        return self._s.select(condition, a, b)
