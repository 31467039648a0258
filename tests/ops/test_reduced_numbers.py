"""Operators that sum, against float64: within the bound their handlers state, and at most twice onnxruntime's error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest

from landbridge.ops.accuracy import accuracy_of, spacing
from tests.ops.float_grids import FLOATS
from tests.ops.one_node import Array, one_node, run_node, takes

OPSET = 22  # the first that has bfloat16 in convolutions, pools and normalizations
#: True results, and for bounds of sums the sums of their terms' magnitudes, both in float64.
Truth = Callable[..., tuple[Array, Array]]


@dataclass(frozen=True)
class Case:
    """A node: its inputs' shapes, which of them are constants, what it gives in float64."""

    op: str
    shapes: Sequence[tuple[int, ...]]
    truth: Truth
    constants: Sequence[int] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    extra: Sequence[Array] = ()
    opset: int = OPSET


def terms(f: Callable[..., Array], *arrays: Array) -> tuple[Array, Array]:
    """A multilinear function, and that of the magnitudes."""
    return f(*arrays), f(*(np.abs(a) for a in arrays))


def convolved(x: Array, w: Array, b: Array) -> Array:
    """3 x 3, padded by 1, with a bias for each channel."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    result: Array = np.einsum("nchwij,ocij->nohw", windows, w, optimize=True) + b[:, None, None]
    return result


def softmax(x: Array) -> tuple[Array, Array]:
    powers = np.exp(x - x.max(-1, keepdims=True))
    result = powers / powers.sum(-1, keepdims=True)
    return result, result


def log_softmax(x: Array) -> tuple[Array, Array]:
    shifted = x - x.max(-1, keepdims=True)
    result = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return result, 1 + np.abs(shifted) + np.abs(result)


def normalized(axes: tuple[int, ...]) -> Truth:
    def truth(x: Array, scale: Array, bias: Array) -> tuple[Array, Array]:
        mean, deviation = x.mean(axes, keepdims=True), np.sqrt(x.var(axes, keepdims=True) + np.float32(1e-5))
        column = scale.shape if axes == (1,) else (-1, *(1,) * len(axes))
        s, b = scale.reshape(column), bias.reshape(column)
        condition = (np.abs(x) + np.abs(x).mean(axes, keepdims=True)) / deviation * np.abs(s) + np.abs(b)
        return (x - mean) / deviation * s + b, condition

    return truth


def same(result: Array) -> tuple[Array, Array]:
    return result, np.abs(result)


def log_sum_exp(x: Array) -> tuple[Array, Array]:
    top = x.max(1, keepdims=True)
    result = np.log(np.exp(x - top).sum(1, keepdims=True)) + top
    return result, 1 + np.abs(result)


def linear(f: Callable[..., Array]) -> Truth:
    """The truth of a function that is linear in each of its inputs."""
    return lambda *arrays: terms(f, *arrays)


def spread(x: Array, w: Array) -> Array:
    """Windows of 2 x 2 that do not overlap."""
    n, _, h, width = x.shape
    result: Array = np.einsum("nchw,coij->nohiwj", x, w).reshape(n, w.shape[1], 2 * h, 2 * width)
    return result


def averaged(x: Array) -> Array:
    result: Array = np.lib.stride_tricks.sliding_window_view(x, (30, 30), (2, 3)).mean((4, 5))
    return result


AXIS = (np.array([1]),)
EPSILON = {"epsilon": 1e-5}
CASES = [
    Case("MatMul", [(9, 4096), (4096, 40)], linear(np.matmul), [1]),
    Case("MatMul", [(3, 5, 700), (3, 700, 9)], linear(np.matmul)),
    Case("Gemm", [(4, 3000), (33, 3000), (33,)], linear(lambda a, b, c: a @ b.T + c), [1, 2], {"transB": 1}),
    Case("Conv", [(1, 256, 7, 7), (20, 256, 3, 3), (20,)], linear(convolved), [1, 2], {"pads": [1] * 4}),
    Case("ConvTranspose", [(1, 700, 4, 4), (700, 8, 2, 2)], linear(spread), [1], {"strides": [2, 2]}),
    Case("Einsum", [(40, 900), (900, 7)], linear(lambda a, b: (a @ b).T), [], {"equation": "ij,jk->ki"}),
    *(
        Case(op, [(6, 5000)], truth, [1], {}, AXIS)
        for op, truth in {
            "ReduceSum": lambda x: (x.sum(1, keepdims=True), np.abs(x).sum(1, keepdims=True)),
            "ReduceMean": lambda x: (x.mean(1, keepdims=True), np.abs(x).mean(1, keepdims=True)),
            "ReduceL1": lambda x: same(np.abs(x).sum(1, keepdims=True)),
            "ReduceL2": lambda x: same(np.sqrt((x * x).sum(1, keepdims=True))),
            "ReduceSumSquare": lambda x: same((x * x).sum(1, keepdims=True)),
            "ReduceLogSumExp": log_sum_exp,
            "ReduceMax": lambda x: same(x.max(1, keepdims=True)),
        }.items()
    ),
    Case("Softmax", [(5, 5000)], softmax),
    Case("LogSoftmax", [(5, 5000)], log_softmax),
    Case("LayerNormalization", [(4, 5000), (5000,), (5000,)], normalized((1,)), [1, 2], EPSILON),
    Case("InstanceNormalization", [(2, 3, 40, 50), (3,), (3,)], normalized((2, 3)), [1, 2], EPSILON),
    Case("LpNormalization", [(4, 3000)], lambda x: same(x / np.sqrt((x * x).sum(1, keepdims=True))), [], {"axis": 1}),
    Case("GlobalAveragePool", [(1, 3, 60, 70)], linear(lambda x: x.mean((2, 3), keepdims=True))),
    Case("AveragePool", [(1, 3, 40, 40)], linear(averaged), [], {"kernel_shape": [30, 30]}),
    Case("CumSum", [(3, 800)], linear(lambda x: x.cumsum(1)), [1], {}, (np.array(1),)),
]  # fmt: skip
#: What the values are like.
VALUES: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "around 0": lambda rng, shape: rng.normal(size=shape),
    "of one sign": lambda rng, shape: rng.random(shape),
    "all equal": lambda rng, shape: np.full(shape, 0.1),
    "far from 0": lambda rng, shape: rng.normal(size=shape) * 0.01 + 8,
}


def drawn(case: Case, dtype: str, values: str) -> tuple[list[Array], list[Array]]:
    """The inputs of a case in ``dtype``, and the float64 ones they stand for."""
    rng = np.random.default_rng(5)
    arrays = [VALUES[values](rng, shape).astype(FLOATS[dtype]) for shape in case.shapes]
    return [*arrays, *case.extra], [a.astype(np.float64) for a in arrays]


def check(case: Case, dtype: str, values: str, target: str) -> Array:
    """Run a case and compare it with its stated bound; the errors."""
    arrays, wide = drawn(case, dtype, values)
    want, condition = case.truth(*wide)
    (found,) = run_node(case.op, arrays, case.constants, target=target, opset=case.opset, **case.attributes)
    assert found.dtype == FLOATS[dtype]
    declared = accuracy_of("", case.op, case.opset)
    assert declared is not None
    error = np.abs(found.astype(np.float64) - want)
    allowed = declared.tolerance(want, dtype, target.split()[0], condition if declared.sums else None)
    if case.op == "LogSoftmax":
        allowed = declared.bound(dtype) * np.finfo(np.float64 if dtype == "float64" else np.float32).eps * condition
        allowed = allowed + 0.5 * spacing(want, dtype)
    largest = float(ml_dtypes.finfo(FLOATS[dtype]).max)  # type: ignore[no-untyped-call]
    allowed = np.where(np.abs(want) < largest, allowed, np.inf)
    # numpy's own float64 is no truer than a few eps of its own
    assert (error <= allowed + 1e-14 * np.abs(condition)).all(), (error / allowed).max()
    return error


#: Every case with every dtype and kind of values, on one target or the other.
SWEEP = [
    pytest.param(
        case, dtype, values, ("llvm", "c")[(i + j + k) % 2], id=f"{case.op}{len(case.shapes[0])}-{dtype}-{values}"
    )
    for i, case in enumerate(CASES)
    for j, dtype in enumerate(FLOATS)
    for k, values in enumerate(VALUES)
    if takes(case.op, dtype, case.opset)
]
#: Every case with every dtype on devices, with one kind of values.
ON_DEVICES = [
    pytest.param(
        case, dtype, list(VALUES)[(i + j) % len(VALUES)], target, id=f"{case.op}{len(case.shapes[0])}-{dtype}-{target}"
    )
    for i, case in enumerate(CASES)
    for j, dtype in enumerate(FLOATS)
    for target in ("opencl", "vulkan")
    if takes(case.op, dtype, case.opset)
]


@pytest.mark.sample(8)
@pytest.mark.parametrize(("case", "dtype", "values", "target"), SWEEP)
def test_error_is_within_the_declared_bound(case: Case, dtype: str, values: str, target: str) -> None:
    check(case, dtype, values, target)


@pytest.mark.sample(2, rarer=3)
@pytest.mark.parametrize(("case", "dtype", "values", "target"), ON_DEVICES)
def test_error_on_devices_is_within_the_declared_bound(case: Case, dtype: str, values: str, target: str) -> None:
    check(case, dtype, values, target)


@pytest.mark.sample(4)
@pytest.mark.parametrize("values", list(VALUES))
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.op}{len(c.shapes[0])}")
def test_error_is_at_most_twice_that_of_onnxruntime(case: Case, values: str) -> None:
    arrays, wide = drawn(case, "float32", values)
    want, condition = case.truth(*wide)
    model = one_node(case.op, arrays, case.constants, opset=case.opset, **case.attributes)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    (theirs,) = session.run(None, {n: arrays[int(n[1:])] for n in names})
    error = check(case, "float32", values, "llvm")
    other = np.abs(theirs.astype(np.float64) - want)
    least = np.finfo(np.float32).eps * np.abs(condition)  # an error of one eps is none
    assert np.sqrt((error**2).mean()) <= 2 * np.sqrt((other**2).mean()) + np.sqrt((least**2).mean())
    assert error.max() <= 2 * other.max() + least.max()


@pytest.mark.full
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_ten_million_elements(target: str) -> None:
    x = np.random.default_rng(0).random(10_000_000, dtype=np.float32)
    want = x.astype(np.float64).sum()
    for op, scale in (("ReduceSum", 1.0), ("ReduceMean", 1e-7)):
        (found,) = run_node(op, [x, np.array([0])], {1}, target=target)
        assert abs(float(found.item()) - want * scale) <= 2 * np.finfo(np.float32).eps * want * scale
