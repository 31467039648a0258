"""Converts arrays of constants to other dtypes, as kernels convert values (docs/numbers.md, "Casts")."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


#: The largest finite values of 8-bit floats, from ONNX's page of them.
_LARGEST = {"float8_e4m3fn": 448.0, "float8_e4m3fnuz": 240.0, "float8_e5m2": 57344.0, "float8_e5m2fnuz": 57344.0}


def converted(x: Array, kind: np.dtype[Any], *, saturate: bool = True) -> Array:
    """Returns ``x`` converted to ``kind``.

    Floats become integers by rounding towards zero; values out of range become the nearest legal one, and NaN becomes
    0. Floats become floats rounded once, integers become 16-bit floats by way of f32, and integers become integers by
    wrapping. Values out of range of an 8-bit float become its largest, or with ``saturate`` false its infinity or NaN.
    """
    x = np.asarray(x)
    if (largest := _LARGEST.get(kind.name)) is not None:
        wide = x.astype(_SINGLE)
        return (np.clip(wide, -largest, largest) if saturate else wide).astype(kind)  # NaN stays NaN
    with np.errstate(over="ignore", invalid="ignore"):
        if kind.kind in "iu" and x.dtype.kind in "fV":
            return _integers(x, kind)
        if kind.kind == "V" and x.dtype == _DOUBLE:  # which numpy converts by way of f32
            return _odd_single(x).astype(kind)
        if kind.itemsize == 2 and kind.kind in "fV" and x.dtype.kind in "iu":
            return x.astype(_SINGLE).astype(kind)
        return x.astype(kind)


def _integers(x: Array, kind: np.dtype[Any]) -> Array:
    info, whole = np.iinfo(kind), np.trunc(x.astype(_DOUBLE))
    top = float(info.max)
    inside = np.where((whole >= info.min) & (whole < top), whole, 0).astype(kind)
    ends = np.where(whole >= top, kind.type(info.max), np.where(whole < info.min, kind.type(info.min), inside))
    return np.asarray(ends, kind)


def _odd_single(x: Array) -> Array:
    """Returns f64 as f32 rounded to odd: cut off, with the last bit set if that lost something.

    Rounding the result again, to fewer bits, equals rounding ``x`` once.
    """
    rounded = x.astype(_SINGLE)
    back, bits = rounded.astype(_DOUBLE), rounded.view(np.int32)
    cut = np.where(np.abs(back) > np.abs(x), bits - 1, bits)
    return np.where((back == x) | (x != x), bits, cut | 1).astype(np.int32).view(_SINGLE)
