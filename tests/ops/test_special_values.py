"""NaN, infinities, zeros, subnormal and large numbers in operators that choose, quantize, accumulate or take norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.ops.elementwise_models import KINDS
from tests.ops.one_node import Array, run_node

NAN, INF = np.nan, np.inf
X = np.array([NAN, INF, -INF, 0, -0.0, 1e-45, -1e-40, 3.4e38, -3.4e38, 0.5, 1.5, 2.5, -0.5, -1.5, 127.5, 128, -128.5,
              -129, 255.5, 256, 300, -1, 3, 7], np.float32)  # fmt: skip
Y = np.roll(X, 5)
ROWS = np.array([[1, 2, NAN, 4, 5], [1, INF, 3, -INF, 5], [0, INF, 1, 1, 1], [1, 1, -0.0, 1, 2]], np.float32)
ENDS = [np.array(-1, np.float32), np.array(2, np.float32)]
#: Operator, inputs, how many of the last are constants, attributes, and what numpy makes of it.
CASES: dict[str, tuple[str, list[Array], int, dict[str, Any], Callable[[], Array]]] = {
    "Mod": ("Mod", [X, Y], 0, {"fmod": 1}, lambda: np.fmod(X, Y)),
    "IsNaN": ("IsNaN", [X], 0, {}, lambda: np.isnan(X)),
    "IsInf": ("IsInf", [X], 0, {}, lambda: np.isinf(X)),
    "IsInf above": ("IsInf", [X], 0, {"detect_negative": 0}, lambda: np.isposinf(X)),
    "IsInf below": ("IsInf", [X], 0, {"detect_positive": 0}, lambda: np.isneginf(X)),
    "Where": ("Where", [X > 0, X, Y], 0, {}, lambda: np.where(X > 0, X, Y)),
    "Clip": ("Clip", [X, *ENDS], 2, {}, lambda: np.clip(X, *ENDS)),
    "CumSum": ("CumSum", [ROWS, np.array(1)], 1, {}, lambda: ROWS.cumsum(1)),
    "CumSum back": ("CumSum", [ROWS, np.array(1)], 1, {"reverse": 1}, lambda: ROWS[:, ::-1].cumsum(1)[:, ::-1]),
    "ReduceProd": ("ReduceProd", [ROWS, np.array([1])], 1, {}, lambda: ROWS.prod(1, keepdims=True)),
    "GlobalLpPool 1": ("GlobalLpPool", [ROWS[None]], 0, {"p": 1}, lambda: np.abs(ROWS).sum(1)[None, :, None]),
    "GlobalLpPool 2": ("GlobalLpPool", [ROWS[None]], 0, {"p": 2}, lambda: np.sqrt((ROWS**2).sum(1))[None, :, None]),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_special_values_are_numpys(name: str, target: str) -> None:
    op, arrays, constants, attributes, want = CASES[name]
    numbered = range(len(arrays) - constants, len(arrays))
    (found,) = run_node(op, arrays, numbered, target=target, **attributes)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, want())


@pytest.mark.sample(2)
@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("scale", [1.0, 0.1, 3.0])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantized_specials_saturate(dtype: type[np.generic], scale: float, target: str) -> None:
    x, step, zero = X[~np.isnan(X)], np.array(scale, np.float32), np.array(3, dtype)
    (found,) = run_node("QuantizeLinear", [x, step, zero], {1, 2}, target=target)
    with np.errstate(over="ignore"):
        want = np.clip(np.rint(x / step).astype(np.float64) + 3, np.iinfo(dtype).min, np.iinfo(dtype).max)
    np.testing.assert_array_equal(found, want)


@pytest.mark.sample(4)
@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64])
def test_casts_of_what_does_not_fit_saturate(dtype: type[np.generic], source: type[np.generic], target: str) -> None:
    values = [-1, -0.5, -6e4, -1e30, 300.7, 65504, 7e4, 2.0**31, 2.0**32, 5e9, 9.3e18, -9.3e18, 1.9e19, -129, INF, -INF]
    with np.errstate(over="ignore"):
        x = np.array([*values, NAN]).astype(source)
    info = np.iinfo(dtype)  # type: ignore[type-var]
    want = [info.min if v < info.min else info.max if v > info.max else int(v) for v in x[:-1].astype(float).tolist()]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    (found,) = run_node("Cast", [x], target=target, to=kind)
    assert found.tolist() == [*want, 0]
