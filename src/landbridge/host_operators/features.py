"""Features of sound: MelWeightMatrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.operators import Array, HostValue, Results, host_operator


def _mel_results(
    bins: HostValue, length: HostValue, *_: HostValue, output_datatype: int | str = "float32", **__: Any
) -> Results:
    known = [None if v.value is None else int(v.value.reshape(-1)[0]) for v in (length, bins)]
    return [((None if known[0] is None else known[0] // 2 + 1, known[1]), _datatype(output_datatype))]


def _datatype(code: int | str) -> str:
    names = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}
    return code if isinstance(code, str) else names.get(code, "float32")


@host_operator("", "MelWeightMatrix", results=_mel_results)
def mel_weight_matrix(
    bins: Array, length: Array, rate: Array, lowest: Array, highest: Array, *, output_datatype: int | str = "float32"
) -> Array:
    """Returns triangular filters over the bins of a spectrum, a column each, spaced evenly on the mel scale."""
    count, points, hertz = (int(v.reshape(-1)[0]) for v in (bins, length, rate))
    ends = [2595 * np.log10(1 + float(v.reshape(-1)[0]) / 700) for v in (lowest, highest)]
    mel = np.arange(count + 2) * ((ends[1] - ends[0]) / (count + 2)) + ends[0]
    corners = ((points + 1) * (700 * (np.power(10, mel / 2595) - 1)) // hertz).astype(int)
    at = np.arange(points // 2 + 1)[:, None]
    left, top, right = corners[:-2], corners[1:-1], corners[2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        rising = np.where(left == top, 1.0, (at - left) / (top - left))
        falling = (right - at) / (right - top)
    created = np.where((at >= left) & (at <= top), rising, 0.0)
    created = np.where((at >= top) & (at < right), falling, created)
    created = np.where((at == top) & (left == top) & (right == top), 1.0, created)
    return created.astype(numpy_dtype(_datatype(output_datatype)))
