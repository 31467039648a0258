"""Error bounds of operators: the maximum error of a result, declared with its handler, read by tests and docs.

A bound is in units of the last place (ulp) of the result, against the same function of the same inputs in real
numbers. It is stated for f32; f64 keeps it too unless it says otherwise. 16-bit floats are computed in f32 and rounded
once: to them half a place of their own is added. Integers, bools and moves are exact. Results that are too large or
too small for the dtype become infinite or 0 as IEEE 754 rounds them; NaN is where the true result is no number.

::

    @kernel("", "Exp")
    @accuracy(ulp=2)
    def exp(c: OpContext, x: Operand) -> Operand: ...

    @kernel("", "MatMul")
    @accuracy(ulp=4, sums=True)   # in eps times the sum of the terms' magnitudes
    def matmul(c: OpContext, a: Operand, b: Operand) -> Operand: ...
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from landbridge.errors import CompileError
from landbridge.operators import REGISTRY, Handler, Kernel
from landbridge.records import record

Array = np.ndarray[Any, Any]

_NARROW = ("float16", "bfloat16")


@record(frozen=True)
class Accuracy:
    """A bound on errors. ``ulp`` 0 means bit for bit (any NaN equals another), 0.5 means correctly rounded."""

    ulp: float
    #: The bound where results are sums of terms that cancel: ``ulp`` times eps times the sum of their magnitudes.
    sums: bool = False
    #: What f64 keeps to, where that is another bound.
    float64: float | None = None
    #: Bounds of target kinds whose devices may be less exact, by kind.
    targets: Mapping[str, float] = field(default_factory=dict)
    #: What is allowed besides, in units of the smallest number of the dtype that is computed in.
    least: float = 0.0
    #: Where the bound holds, or what else is to be known.
    note: str = ""

    def bound(self, dtype: str, kind: str = "llvm") -> float:
        """Returns the bound in ulp of f32, or of f64 for ``float64``; 0 for integers and bools."""
        if not dtype.startswith(("float", "bfloat")):
            return 0.0
        if dtype == "float64" and self.float64 is not None:
            return self.float64
        return self.targets.get(kind, self.ulp)

    def tolerance(self, want: Array, dtype: str, kind: str = "llvm", condition: Array | None = None) -> Array:
        """Returns the largest legal error of a result of ``dtype`` from ``want``, which has more precision; of want's
        dtype and shape.

        ``condition`` is the sum of the magnitudes of each result's terms, in the shape of ``want``: needed where the
        bound is of ``sums``. 0 where ``want`` is infinite or NaN.
        """
        bound = self.bound(dtype, kind)
        if self.sums and condition is None:
            raise CompileError("a bound of sums is relative to a condition; give the sum of the terms' magnitudes")
        if not bound:
            return np.zeros_like(want)
        computed = "float32" if dtype in _NARROW else dtype
        if self.sums:
            least = spacing(np.zeros((), want.dtype), computed)
            allowed = bound * (float(np.finfo(computed).eps) * np.asarray(condition, want.dtype) + least)
        else:
            allowed = bound * spacing(want, computed)
        if self.least:
            allowed = allowed + self.least * spacing(np.zeros((), want.dtype), computed)
        if dtype in _NARROW:
            allowed = allowed + 0.5 * spacing(want, dtype)
        return np.where(np.isfinite(want), allowed, 0.0)


#: Binary digits, and the exponents (as frexp gives them) of the smallest and the largest normal number.
_FORMATS = {
    "float16": (11, -13, 16),
    "bfloat16": (8, -125, 128),
    "float32": (24, -125, 128),
    "float64": (53, -1021, 1024),
}


def spacing(want: Array, dtype: str) -> Array:
    """Returns the unit of the last place of a float ``dtype`` at each of ``want``: of its dtype and shape, never 0.

    Between two powers of 2 it is the distance of neighbours; beyond the largest number, that below it.
    """
    digits, lowest, highest = _FORMATS[dtype]
    _, exponent = np.frexp(np.where(np.isfinite(want), want, 1.0))
    exponent = np.clip(np.where(want == 0, lowest, exponent), lowest, highest)
    return np.asarray(np.ldexp(want.dtype.type(1), exponent - digits))


_DECLARED: dict[Handler, Accuracy] = {}

#: Bit for bit: moves, shapes, comparisons, integers.
EXACT = Accuracy(0.0)
#: As IEEE 754 rounds one operation.
ROUNDED = Accuracy(0.5)
#: Sums of up to 16384 terms, products among them: no chain of additions is longer than 512, and blocks of 256 are
#: added up. It holds for any terms; those of random signs or sizes come within a few eps.
SUMS = Accuracy(300, sums=True, note="up to 16384 terms")
#: Results that follow from a sum of terms of one sign by a few operations.
OF_SUMS = Accuracy(400, note="up to 16384 terms")


def accuracy(
    declared: Accuracy | None = None,
    /,
    *,
    ulp: float = 0.0,
    sums: bool = False,
    float64: float | None = None,
    targets: Mapping[str, float] | None = None,
    least: float = 0.0,
    note: str = "",
) -> Callable[[Handler], Handler]:
    """Declares the Accuracy of a handler: one that is given, or of these fields. It stands directly above its
    ``def``.
    """
    found = declared or Accuracy(ulp, sums, float64, dict(targets or {}), least, note)

    def state(handler: Handler) -> Handler:
        _DECLARED[handler] = found
        return handler

    return state


def accuracy_of(domain: str = "", op_type: str | int | None = None, opset: int | str | None = None) -> Accuracy | None:
    """Returns the accuracy that the kernel of an operator declares; None when it declares none.

    The former order of arguments, ``op_type, opset, domain=""``, is deprecated. Raises CompileError without a kernel.
    """
    if not isinstance(op_type, str):
        warnings.warn(
            "accuracy_of(op_type, opset) is deprecated; call accuracy_of(domain, op_type, opset)",
            DeprecationWarning,
            stacklevel=2,
        )
        if op_type is None:
            domain, op_type, opset = "", domain, opset
        else:
            domain, op_type, opset = str(opset or ""), domain, op_type
    if not isinstance(opset, int):
        raise CompileError(f"accuracy_of {op_type} of opset {opset!r}; legal: the number of an opset")
    kernel = REGISTRY.find(Kernel, domain, op_type, opset)
    if kernel is None:
        raise CompileError(
            f"{domain or 'ai.onnx'}.{op_type} of opset {opset} has no kernel; legal: what docs/operator-table.md lists"
        )
    return _DECLARED.get(kernel.function)
