"""Elementwise operators: constants are folded to the bits that compiled kernels give, over whole dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from landbridge.targets import Target
from tests.ops.float_grids import grid, pairs
from tests.ops.one_node import run_node, takes

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def fused_multiply_adds() -> None:
    if not any(word in str(Target("llvm")) for word in ("+fma,", "aarch64")):
        pytest.skip("a CPU without fused multiply-adds rounds products and sums each")


UNARY = [
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp",
    "Floor", "Gelu", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Reciprocal",
    "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh",
    "ThresholdedRelu",
]  # fmt: skip
BINARY = ["Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "PRelu", "Less", "GreaterOrEqual", "Equal"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
#: Functions of f64 are numpy's when they are folded, and the C library's in a run: each is within one unit in the last
#: place of the true value, and an operator calls two of them, one of what the other gives, at most.
_ULP_OF_DOUBLE = 4
#: Beyond it a run calls the C library for angles of f32, which is within one unit in the last place.
_LIBRARY_ANGLE = 6000.0


def check(op: str, arrays: Sequence[Array], **attributes: Any) -> None:
    """Raise AssertionError unless ``op`` of ``arrays`` is folded to what a run gives."""
    folded = run_node(op, arrays, range(len(arrays)), opset=22, **attributes)[0]
    run = run_node(op, arrays, (), opset=22, **attributes)[0]
    assert (folded.dtype, folded.shape) == (run.dtype, run.shape)
    if folded.dtype == np.float64:
        finite = np.isfinite(run) & np.isfinite(folded)
        np.testing.assert_array_equal(folded[~finite], run[~finite])
        np.testing.assert_array_max_ulp(folded[finite], run[finite], _ULP_OF_DOUBLE)
        return
    bits = np.dtype(f"u{folded.dtype.itemsize}")
    is_nan = folded != folded
    np.testing.assert_array_equal(is_nan, run != run)  # of which kind is open
    signs = folded == 0  # either zero will do for the larger or smaller of two
    differs = (folded.view(bits) != run.view(bits)) & ~is_nan & ~(signs & (run == 0))
    if op in ("Sin", "Cos", "Tan") and folded.dtype == np.float32:
        far = np.abs(arrays[0]) > _LIBRARY_ANGLE
        np.testing.assert_array_max_ulp(folded[far & ~is_nan], run[far & ~is_nan], 1)
        differs &= ~far
    where = np.flatnonzero(differs)[:5]
    assert not where.size, (
        f"{op} of {[a[where] if a.ndim else a for a in arrays]}: {folded[where]}, in runs {run[where]}"
    )


@pytest.mark.sample(14)
@pytest.mark.parametrize(
    ("op", "dtype"),
    [(op, d) for op, d in product(UNARY, ["float32", "float16", "bfloat16", "float64"]) if takes(op, d, 22)],
)
def test_functions(op: str, dtype: str) -> None:
    check(op, [grid(dtype, 20_000)])


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("op", "dtype"), [(op, d) for op, d in product(BINARY, ["float32", "float16"]) if takes(op, d, 22)]
)
def test_functions_of_two(op: str, dtype: str) -> None:
    check(op, pairs(dtype, 4000), **({"fmod": 1} if op == "Mod" else {}))


@pytest.mark.sample(11)
@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        (op, d)
        for op, d in product(
            ["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Less", "BitShift", "BitwiseXor"], INTEGERS
        )
        if takes(op, d, 22)
    ],
)
def test_integers(op: str, dtype: str) -> None:
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, 100], dtype)
    some = np.concatenate([ends, np.random.default_rng(2).integers(info.min, info.max, 30, dtype, endpoint=True)])
    a, b = (x.reshape(-1) for x in np.meshgrid(some, some))
    check(op, [a, b], **({"direction": "RIGHT"} if op == "BitShift" else {}))


KINDS = ["float32", "float16", "bfloat16", "float64", "bool", *INTEGERS]


@pytest.mark.sample(14)
@pytest.mark.parametrize(("source", "to"), [(a, b) for a, b in product(KINDS, KINDS) if a != b])
def test_casts(source: str, to: str) -> None:
    import onnx

    if source == "bool":
        x = np.array([True, False])
    elif source in INTEGERS:
        info = np.iinfo(source)
        ends = np.array([info.min, info.max, 0, 1, info.max // 2, info.max - 1], source)
        x = np.concatenate([ends, np.random.default_rng(3).integers(info.min, info.max, 500, source, endpoint=True)])
    else:
        x = grid(source, 20_000)
    kind = np.dtype(ml_dtypes.bfloat16) if to == "bfloat16" else np.dtype(to)
    check("Cast", [x], to=onnx.helper.np_dtype_to_tensor_dtype(kind))
