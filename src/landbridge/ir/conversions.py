"""Arrays of constants as other dtypes, as kernels convert values (docs/numbers.md, "Casts")."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


#: The largest numbers of floats of eight bits, from ONNX's page of them.
_LARGEST = {"float8_e4m3fn": 448.0, "float8_e4m3fnuz": 240.0, "float8_e5m2": 57344.0, "float8_e5m2fnuz": 57344.0}


def converted(x: Array, kind: np.dtype[Any], *, saturate: bool = True) -> Array:
    """``x`` as ``kind``: floats to integers towards zero, what does not fit to the nearest that does and NaN to 0;
    floats to floats rounded once; integers to 16-bit floats by way of f32; integers to integers wrapping.

    What floats of eight bits do not hold becomes their largest, or with ``saturate`` false what has no number there.
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
    """f64 as f32, cut off and with its last bit set where that lost something: rounding the result once more, to fewer
    bits, is as rounding ``x`` once."""
    rounded = x.astype(_SINGLE)
    back, bits = rounded.astype(_DOUBLE), rounded.view(np.int32)
    cut = np.where(np.abs(back) > np.abs(x), bits - 1, bits)
    return np.where((back == x) | (x != x), bits, cut | 1).astype(np.int32).view(_SINGLE)
